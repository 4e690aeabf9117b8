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
  const auto words = core::read_whole(announcement());
  long long node = 0;
  // Until its last byte is there it is not yet announced.
  if (!words || !words->ends_with('\n') || !text::parse_integer(words->substr(0, words->size() - 1), node)) return {};
  return static_cast<int>(node);
}

// No name but the last one, which a job that is killed in between cannot leave behind unseen: whoever collects removes
// it. Its end says that it is whole.
void StallFiles::answer(int node, const std::string& slots) const {
  const auto file = answer_file(node);
  if (claim_file(file) != Claim::won) return;
  std::ofstream(file) << slots << '\n';
  // Nobody would remove an answer that comes too late.
  std::error_code error;
  if (!announcer()) fs::remove(file, error);
}

std::optional<std::string> StallFiles::answer_of(int node) const {
  const auto words = core::read_whole(answer_file(node));
  if (!words || !words->ends_with('\n')) return {};
  return words->substr(0, words->size() - 1);
}

void StallFiles::remove(int nodes) const {
  std::error_code error;
  // First what answers are given to: an answer that is written now removes itself.
  fs::remove(announcement(), error);
  for (int node = 0; node < nodes; ++node) fs::remove(answer_file(node), error);
}

}  // namespace hortator::runtime
