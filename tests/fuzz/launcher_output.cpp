// Fuzzes what reads the output of mpirun and srun: where the output is divided while it is read does not matter, and
// all bytes but those of reports pass.
#include <cstdint>
#include <string>
#include <string_view>

#include "launch/launcher_output.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

struct Passed {
  std::string bytes = {};
  std::vector<std::string> reports = {};
  int rank = -1;

  bool operator==(const Passed&) const = default;
};

Passed pass(std::string_view text, std::size_t piece) {
  launching::LauncherOutput output;
  Passed passed;
  for (std::size_t at = 0; at < text.size(); at += piece) passed.bytes += output.take(text.substr(at, piece));
  passed.bytes += output.finish();
  passed.reports = output.reports();
  const auto killed = output.killed_rank();
  if (killed) passed.rank = killed->rank;
  return passed;
}

}  // namespace

FUZZ_TARGET(launcher_output) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto whole = pass(text, text.empty() ? 1 : text.size());
  if (whole != pass(text, 1 + data[0] % 64)) __builtin_trap();
  if (whole.bytes.size() > text.size()) __builtin_trap();
  if (whole.reports.empty() && whole.bytes != text) __builtin_trap();
  return 0;
}
