#include "runtime/watchdog/stall_files.hpp"

#include <fstream>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::runtime {

namespace fs = std::filesystem;

fs::path StallFiles::announcement() const { return folder_ / (".stall-" + run_); }

fs::path StallFiles::answer_file(int node) const { return announcement().concat(text::concat(".node-", node)); }

Claim StallFiles::announce(int node) const {
  const auto claim = claim_file(announcement());
  if (claim == Claim::won) std::ofstream(announcement()) << node << '\n';
  return claim;
}

std::optional<int> StallFiles::announcer() const {
  const auto content = core::read_whole(announcement());
  long long node = 0;
  // The announcement is valid once its last byte is there.
  if (!content || !content->ends_with('\n') || !text::parse_integer(content->substr(0, content->size() - 1), node))
    return {};
  return static_cast<int>(node);
}

// Written under its final name, not renamed from a temporary file that a killed job would leave behind: the node that
// collects removes it. Its last byte marks it as complete.
void StallFiles::answer(int node, const std::string& slots) const {
  const auto file = answer_file(node);
  if (claim_file(file) != Claim::won) return;
  std::ofstream(file) << slots << '\n';
  // An answer that is too late would not be removed by anybody else.
  std::error_code error;
  if (!announcer()) fs::remove(file, error);
}

std::optional<std::string> StallFiles::answer_of(int node) const {
  const auto content = core::read_whole(answer_file(node));
  if (!content || !content->ends_with('\n')) return {};
  return content->substr(0, content->size() - 1);
}

void StallFiles::remove(int nodes) const {
  std::error_code error;
  // The announcement first: an answer that is written afterwards removes itself.
  fs::remove(announcement(), error);
  for (int node = 0; node < nodes; ++node) fs::remove(answer_file(node), error);
}

}  // namespace hortator::runtime
