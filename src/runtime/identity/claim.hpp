#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Elects the rank that reports, mainly for a failed run: the first that creates a file in the run folder. Needs no
/// communication, which a failing rank does not have.
namespace hortator::runtime {

enum class Claim {
  won,
  lost,
  impossible,  ///< the folder cannot be written, or the run has no name
};

/// Tries to create `file` and, if necessary, its folder. The process that creates it has won.
Claim claim_file(const std::filesystem::path& file);

/// Claims the right to report a failed run.
Claim claim_failure(const std::filesystem::path& folder, std::string_view run_id);

/// Whether any rank has won that claim.
bool is_failure_claimed(const std::filesystem::path& folder, std::string_view run_id);

/// Replaces failure.json atomically by the run's claim, which is gone then. `content` is JSON with the member "run_id".
/// False when it cannot be written.
bool write_failure(const std::filesystem::path& folder, std::string_view run_id, const std::string& content);

/// Removes the records of failures, endings.jsonl and flight.jsonl included, of runs other than `run_id`.
void remove_stale_failure(const std::filesystem::path& folder, std::string_view run_id);

}  // namespace hortator::runtime
