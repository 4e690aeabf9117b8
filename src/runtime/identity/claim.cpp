#include "runtime/identity/claim.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "core/text/json.hpp"
#include "core/whole_file.hpp"
#include "runtime/identity/ending_record.hpp"
#include "runtime/identity/flight_record.hpp"

namespace hortator::runtime {
namespace {

constexpr auto failure_file = "failure.json";
constexpr std::string_view claim_prefix = ".failure-";

// The record is written into the claim, which then becomes failure.json: at each moment one of the two names this run.
std::filesystem::path failure_claim(const std::filesystem::path& folder, std::string_view run_id) {
  return folder / std::string(claim_prefix).append(run_id);
}

// Whether failure.json is of this run. A rank that fails late asks again once it has created a claim of its own: its
// node's file cache then knows the folder as it is.
bool is_reported(const std::filesystem::path& folder, std::string_view run_id) {
  const auto record = core::parse_record(core::read_whole(folder / failure_file).value_or(""));
  return record.is_object() && record.contains("run_id") && record["run_id"] == run_id;
}

bool is_stale(const std::string& name, std::string_view run_id) {
  if (name == failure_file) return true;
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
  if (run_id.empty()) return Claim::impossible;
  if (is_reported(folder, run_id)) return Claim::lost;
  const auto claim = failure_claim(folder, run_id);
  const auto outcome = claim_file(claim);
  if (outcome != Claim::won || !is_reported(folder, run_id)) return outcome;
  std::error_code ignored;
  std::filesystem::remove(claim, ignored);
  return Claim::lost;
}

bool is_failure_claimed(const std::filesystem::path& folder, std::string_view run_id) {
  std::error_code error;
  if (run_id.empty()) return false;
  return std::filesystem::exists(failure_claim(folder, run_id), error) || is_reported(folder, run_id);
}

bool write_failure(const std::filesystem::path& folder, std::string_view run_id, const std::string& content) {
  const auto claim = failure_claim(folder, run_id);
  if (core::write_whole(folder / failure_file, claim, content + '\n')) return true;
  std::error_code ignored;
  std::filesystem::remove(claim, ignored);
  return false;
}

void remove_stale_failure(const std::filesystem::path& folder, std::string_view run_id) {
  // With a claim of this run failure.json belongs to this run, or is about to be written by it.
  if (is_failure_claimed(folder, run_id)) return;
  std::error_code error;
  for (const char* file : {endings_file, flight_file}) std::filesystem::remove(folder / "status" / file, error);
  error.clear();
  std::vector<std::filesystem::path> stale;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_stale(entry->path().filename().string(), run_id)) stale.push_back(entry->path());
  }
  for (const auto& path : stale) std::filesystem::remove(path, error);
}

}  // namespace hortator::runtime
