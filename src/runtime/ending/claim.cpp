#include "runtime/ending/claim.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "core/whole_file.hpp"

namespace hortator::runtime {
namespace {

constexpr std::string_view claim_prefix = ".failure-";

// The claim is kept beside failure.json: a rank that fails late must find it taken, whatever its node's file cache
// holds.
std::filesystem::path failure_claim(const std::filesystem::path& folder, std::string_view run_id) {
  return folder / std::string(claim_prefix).append(run_id);
}

bool is_stale(const std::string& name, std::string_view run_id) {
  if (name == "failure.json") return true;
  return name.starts_with(claim_prefix) && (run_id.empty() || !name.ends_with(run_id));
}

}  // namespace

Claim claim_file(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return Claim::impossible;
  const int descriptor = open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno == EEXIST ? Claim::lost : Claim::impossible;
  close(descriptor);
  return Claim::won;
}

Claim claim_failure(const std::filesystem::path& folder, std::string_view run_id) {
  return run_id.empty() ? Claim::impossible : claim_file(failure_claim(folder, run_id));
}

bool is_failure_claimed(const std::filesystem::path& folder, std::string_view run_id) {
  std::error_code error;
  return !run_id.empty() && std::filesystem::exists(failure_claim(folder, run_id), error);
}

bool write_failure(const std::filesystem::path& folder, std::string_view run_id, const std::string& content) {
  return core::write_whole(folder / "failure.json", failure_claim(folder, run_id).concat(".json"), content + '\n');
}

void remove_stale_failure(const std::filesystem::path& folder, std::string_view run_id) {
  // With a claim of this run failure.json belongs to this run, or is about to be written by it.
  if (is_failure_claimed(folder, run_id)) return;
  std::error_code error;
  std::vector<std::filesystem::path> stale;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_stale(entry->path().filename().string(), run_id)) stale.push_back(entry->path());
  }
  for (const auto& path : stale) std::filesystem::remove(path, error);
}

}  // namespace hortator::runtime
