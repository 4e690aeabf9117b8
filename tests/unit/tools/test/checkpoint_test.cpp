#include <ATen/ops/arange.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/write/save.hpp"
#include "support/catch.hpp"
#include "unit/tools/run_checkpoint.hpp"

using namespace hortator;
using test::run_verb;
namespace fs = std::filesystem;

namespace {

/// A project with checkpoints 0, 2 and 10.
fs::path project() {
  const auto root = fs::absolute("cli_checkpoints");
  fs::remove_all(root);
  const auto comm = mpi::Communicator::world();
  for (const int step : {0, 10, 2}) {
    checkpoint::Snapshot state;
    state.common.put("models/0/weight", at::arange(600).view({20, 30}));
    state.common.put("models/0/bias", at::arange(5).to(at::kBFloat16));
    state.common.put("rate", 0.25);
    checkpoint::save(comm, root / "checkpoints" / ("checkpoint_" + std::to_string(step)), state,
                     {.step = step, .updates = 100 * step, .metadata = {{"loss", "0.5"}}});
  }
  return root;
}

void spoil(const fs::path& path, std::streamoff from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-from_end, std::ios::end);
  file.put('\x5a');
}

}  // namespace

TEST_CASE("checkpoint list prints step, ranks, size and state, sorted by number") {
  const auto root = project();
  fs::remove(root / "checkpoints/checkpoint_2/manifest.json");
  spoil(root / "checkpoints/checkpoint_0/manifest.json", 20);
  const auto [code, output] = run_verb({"checkpoint", "list", root.string()});
  CHECK(code == 0);
  const auto first = output.find("checkpoint_0");
  const auto second = output.find("checkpoint_2");
  const auto third = output.find("checkpoint_10");
  CHECK(first < second);
  CHECK(second < third);
  CHECK_THAT(output, ContainsSubstring("      1000      1 "));  // the optimizer's steps, not the checkpoint's number
  CHECK_THAT(output, ContainsSubstring("damaged") && ContainsSubstring("incomplete") && ContainsSubstring("complete"));
  CHECK(run_verb({"checkpoint", "list", (root / "checkpoints/checkpoint_10").string()}).code == 0);
  CHECK_THAT(run_verb({"checkpoint", "list", "/nowhere"}).output, ContainsSubstring("No checkpoint in '/nowhere'"));
}

TEST_CASE("checkpoint show prints a tree of names, types, shapes, sizes and values") {
  const auto root = project();
  const auto [code, output] = run_verb({"checkpoint", "show", (root / "checkpoints/checkpoint_10").string()});
  CHECK(code == 0);
  for (const auto* line :
       {"number 10, step 1000, ", "  loss: 0.5\n", "by 1 rank, 2 tensors of 4.7 KiB in 1 file", "  models/\n    0/\n",
        "      weight  int64 [20, 30]  4.7 KiB\n", "      bias  bfloat16 [5]  10 B\n", "  rate  = 0.25\n"})
    CHECK_THAT(output, ContainsSubstring(line));
}

TEST_CASE("checkpoint verify reports damage by name and exit code") {
  const auto root = project();
  const auto whole = run_verb({"checkpoint", "verify", root.string()});
  CHECK(whole.code == 0);
  CHECK_THAT(whole.output, ContainsSubstring("checkpoint_2: all checksums match"));
  spoil(root / "checkpoints/checkpoint_2/state.h5", 100);
  const auto damaged = run_verb({"checkpoint", "verify", root.string()});
  CHECK(damaged.code == 1);
  CHECK_THAT(damaged.output, ContainsSubstring("checkpoint_10: all checksums match") &&
                                 ContainsSubstring("checkpoint_2: damaged") &&
                                 ContainsSubstring("'models/0/weight' does not match"));
}

TEST_CASE("checkpoint has help, and hints for unknown verbs") {
  CHECK_THAT(run_verb({"checkpoint", "--help"}).output, ContainsSubstring("usage: hortator checkpoint"));
  CHECK_THAT(run_verb({"checkpoint", "lst"}).output, ContainsSubstring("did you mean 'list'?"));
  CHECK_THAT(run_verb({"checkpoint"}).output, ContainsSubstring("verb is missing"));
}

TEST_CASE("checkpoint prune keeps what its options ask for, and --dry-run removes nothing") {
  const auto root = project();
  const auto is_there = [&](int number) {
    return fs::exists(root / "checkpoints" / ("checkpoint_" + std::to_string(number)));
  };
  CHECK(run_verb({"checkpoint", "prune", root.string()}).output.find("--keep N is missing") != std::string::npos);
  CHECK(run_verb({"checkpoint", "prune", root.string(), "--keep", "0"}).code == 2);
  const auto dry = run_verb({"checkpoint", "prune", root.string(), "--keep", "1", "--keep-every", "5", "--dry-run"});
  CHECK(dry.output.find("would remove") == std::string::npos);  // 0 and 10 are kept, 2 is the newest of the others
  const auto shown = run_verb({"checkpoint", "prune", root.string(), "--keep", "1", "--dry-run"});
  CHECK(shown.output.find("would remove " + (root / "checkpoints/checkpoint_0").string()) != std::string::npos);
  CHECK(shown.output.find("1 checkpoint of 3 would be kept") != std::string::npos);
  CHECK((is_there(0) && is_there(2) && is_there(10)));
  const auto left = root / "checkpoints" / "checkpoint_11.new-20261121T075530.123456-9f3a51c2";
  fs::create_directory(left);
  std::ofstream(left / "state.h5") << "half";
  CHECK(run_verb({"checkpoint", "prune", root.string(), "--keep", "1"}).code == 0);
  CHECK((!is_there(0) && !is_there(2) && is_there(10)));
  CHECK(fs::exists(left));
  CHECK(run_verb({"checkpoint", "prune", (root / "checkpoints").string(), "--keep", "1", "--leftovers"}).code == 0);
  CHECK_FALSE(fs::exists(left));
  CHECK(is_there(10));
}
