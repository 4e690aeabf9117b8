#include "runtime/claim.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

namespace hortator::runtime {
namespace {

constexpr std::string_view claim_prefix = ".failure-";

// The claim stays when failure.json is there: a rank that fails late must find it taken, whatever its node's file cache
// remembers.
std::filesystem::path claim_file(const std::filesystem::path& folder, std::string_view run_id) {
  return folder / std::string(claim_prefix).append(run_id);
}

bool is_stale(const std::string& name, std::string_view run_id) {
  if (name == "failure.json") return true;
  return name.starts_with(claim_prefix) && (run_id.empty() || !name.ends_with(run_id));
}

}  // namespace

Claim claim_failure(const std::filesystem::path& folder, std::string_view run_id) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || run_id.empty()) return Claim::impossible;
  const int file = open(claim_file(folder, run_id).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return errno == EEXIST ? Claim::lost : Claim::impossible;
  close(file);
  return Claim::won;
}

bool write_failure(const std::filesystem::path& folder, std::string_view run_id, const std::string& content) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto aside = claim_file(folder, run_id).concat(".json");
  {
    std::ofstream file(aside);
    file << content << '\n';
    if (!file.flush()) return false;
  }
  std::filesystem::rename(aside, folder / "failure.json", error);
  return !error;
}

void remove_stale_failure(const std::filesystem::path& folder, std::string_view run_id) {
  std::error_code error;
  // A claim of this run says that failure.json is this run's, or about to be.
  if (!run_id.empty() && std::filesystem::exists(claim_file(folder, run_id), error)) return;
  std::vector<std::filesystem::path> stale;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_stale(entry->path().filename().string(), run_id)) stale.push_back(entry->path());
  }
  for (const auto& path : stale) std::filesystem::remove(path, error);
}

}  // namespace hortator::runtime
