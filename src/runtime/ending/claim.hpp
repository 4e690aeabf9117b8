#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Who of all ranks speaks, for a failed run above all: the first to create one file in the run folder. Needs no
/// communication, which a failing rank no longer has.
namespace hortator::runtime {

enum class Claim {
  won,
  lost,
  impossible,  ///< the folder cannot be written, or the run has no name
};

/// Whoever creates `file` has won it; its folder is made if need be.
Claim claim_file(const std::filesystem::path& file);

/// The right to speak for a failed run.
Claim claim_failure(const std::filesystem::path& folder, std::string_view run_id);

/// Has any rank won it?
bool is_failure_claimed(const std::filesystem::path& folder, std::string_view run_id);

/// Replaces failure.json as a whole: a reader sees the old one or the new one. False when it cannot be written.
bool write_failure(const std::filesystem::path& folder, std::string_view run_id, const std::string& content);

/// Removes what other runs than `run_id` have left of their failures.
void remove_stale_failure(const std::filesystem::path& folder, std::string_view run_id);

}  // namespace hortator::runtime
