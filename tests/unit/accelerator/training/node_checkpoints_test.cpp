// Checkpoints in memory in a folder that the test keeps, as a keeper does, and on the nodes' disks. The drills
// survive.* have launches and nodes.
#include "accelerator/training/node_checkpoints.hpp"
#include "accelerator/training/run_output.hpp"

#include <cstdlib>
#include <fstream>

#include "accelerator/state/saved_mesh.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/format.hpp"
#include "support/catch.hpp"
#include "support/environment_copy.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Folder;
using test::Net;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr auto kept_variable = "HORTATOR_KEPT_MEMORY";

/// Restores the environment and the working folder.
class RestoredProcess {
 public:
  ~RestoredProcess() {
    fs::current_path(folder_);
    variables_.restore();
  }

 private:
  test::EnvironmentCopy variables_;
  fs::path folder_ = fs::current_path();
};

/// A folder as a keeper makes it.
fs::path kept_in(const Folder& folder, const State& state) {
  const auto kept = folder.path() / "kept";
  if (state.is_main_process()) fs::create_directories(kept);
  state.wait_for_everyone();
  setenv(kept_variable, kept.c_str(), 1);
  return kept;
}

std::size_t count(const fs::path& folder, const char* stem) {
  std::size_t found = 0;
  std::error_code error;  // saves in the background move folders
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found += entry->path().filename().string().starts_with(stem) ? 1 : 0;
  return found;
}

/// A small training whose number of steps shows what was loaded.
struct MemoryRun {
  explicit MemoryRun(const fs::path& project, const MemoryCheckpointOptions& memory = {.every_steps = 2},
                     const LocalCheckpointOptions& local = {})
      : accelerator({.project = {.dir = project}, .memory_checkpoint = memory, .local_checkpoint = local}) {
    set_seed(7);
    net = Net();
    sgd.emplace(net->parameters(), 0.1);
    prepared.emplace(accelerator.prepare(net, *sgd));
    accelerator.register_for_checkpointing("steps", steps);
    if (accelerator.has_checkpoint()) accelerator.load_state();
  }
  void train(int more) {
    auto& [model, optimizer] = *prepared;
    for (int i = 0; i < more; ++i) {
      accelerator.backward(model(at::ones({2, 3})).sum());
      optimizer.step();
      optimizer.zero_grad();
      ++steps.done;
      CHECK_FALSE(accelerator.should_stop());
    }
  }

  struct Steps {
    std::int64_t done = 0;
    void save(StateWriter& out) const { out.put("done", done); }
    void load(const StateReader& in) { done = in.get<std::int64_t>("done"); }
  } steps;
  Accelerator accelerator;
  Net net{nullptr};
  std::optional<torch::optim::SGD> sgd;
  std::optional<decltype(std::declval<Accelerator&>().prepare(std::declval<Net&>(),
                                                              std::declval<torch::optim::SGD&>()))>
      prepared;
};

}  // namespace

TEST_CASE("the newer one of memory and disk is loaded") {
  const State state;
  const Folder folder(state, "memory_checkpoints");
  const RestoredProcess restored;
  const auto kept = kept_in(folder, state);
  const auto project = folder.path() / "project";
  MemoryRun(project).train(5);
  CHECK(count(kept, "checkpoint_") == 2);
  {
    MemoryRun run(project);
    CHECK(run.steps.done == 4);
    run.train(3);
    run.accelerator.save_state();
  }
  MemoryRun run(project);
  CHECK(run.steps.done == 7);
  run.train(1);
  CHECK(MemoryRun(folder.path() / "other").steps.done == 0);  // each project has its own
}

TEST_CASE("what the disk has is loaded from memory where the disk turns out to be damaged") {
  const State state;
  const Folder folder(state, "memory_checkpoints");
  const RestoredProcess restored;
  kept_in(folder, state);
  const auto project = folder.path() / "project";
  {
    MemoryRun run(project);
    run.train(5);
    const auto saved = run.accelerator.save_state();
    state.wait_for_everyone();
    const auto file = saved / checkpoint::data_file(0, 1);
    if (state.is_main_process())
      std::ofstream(file, std::ios::binary | std::ios::in) << std::string(fs::file_size(file), 'U');
    state.wait_for_everyone();
  }
  CHECK(MemoryRun(project).steps.done == 4);
}

TEST_CASE("the newest whole one of memory, nodes' disks and project is loaded, and a run that finishes leaves none") {
  const State state;
  const Folder folder(state, "node_levels");
  const RestoredProcess restored;
  const auto kept = kept_in(folder, state);
  const auto project = folder.path() / "project";
  const auto disks = folder.path() / "disks";
  if (state.is_main_process()) fs::create_directory(disks);
  state.wait_for_everyone();
  const LocalCheckpointOptions local{.every_steps = 3, .folder = disks};
  const auto fail_after = [&](int steps) {
    CHECK_THROWS_WITH(
        [&] {
          MemoryRun run(project, {.every_steps = 2}, local);
          run.train(steps);
          throw Error({.what = "as a failure"});
        }(),
        Catch::Contains("as a failure"));
  };
  fail_after(9);  // memory has 8, the disks 9
  CHECK(count(disks, "checkpoint_") == 2);
  {
    const MemoryRun run(project, {}, local);
    CHECK(run.steps.done == 9);
  }
  CHECK(count(disks, "checkpoint_") == 2);  // a run that has taken none leaves them
  state.wait_for_everyone();
  if (state.is_main_process()) fs::remove_all(disks);
  state.wait_for_everyone();
  if (state.is_main_process()) fs::create_directory(disks);
  state.wait_for_everyone();
  {
    MemoryRun run(project, {.every_steps = 2}, local);
    CHECK(run.steps.done == 8);
    run.train(5);  // memory has 12, the disks 11
    run.accelerator.save_state();
    run.train(1);
    state.wait_for_everyone();
    CHECK(count(disks, "checkpoint_") > 0);
    state.wait_for_everyone();
  }
  state.wait_for_everyone();
  CHECK(fs::is_empty(disks));
  CHECK(MemoryRun(project, {.every_steps = 2}, local).steps.done == 14);
  state.wait_for_everyone();
  if (state.is_main_process()) fs::remove_all(kept);
  state.wait_for_everyone();
  CHECK(MemoryRun(project, {}, local).steps.done == 13);
}

TEST_CASE("checkpoints of nodes are taken by rank 0's clock, each level at its own interval") {
  const State state;
  const Folder folder(state, "node_levels");
  const RestoredProcess restored;
  const auto others = GENERATE(0h, 1000h);  // how much the clocks of other ranks move in each step
  const auto kept = kept_in(folder, state);
  const auto project = folder.path() / "project";
  const auto disks = folder.path() / "disks";
  if (state.is_main_process()) fs::create_directory(disks);
  state.wait_for_everyone();
  const LocalCheckpointOptions local{.every = 50s, .folder = disks};
  const auto fail_after = [&](int steps, std::chrono::seconds each) {
    MemoryRun run(project, {.every = 30s}, local);
    accelerator::SaveInterval::Clock::time_point now;
    for (const auto& level : accelerator::Training::of(run.accelerator).output.node_levels())
      level->interval().set_clock([&] { return now; });
    for (int i = 0; i < steps; ++i) {
      now += state.is_main_process() ? each : std::chrono::seconds(others);
      run.train(1);
    }
    throw Error({.what = "as a failure"});
  };
  CHECK_THROWS_WITH(fail_after(2, 14s), Catch::Contains("as a failure"));
  CHECK(count(kept, "checkpoint_") + count(disks, "checkpoint_") == 0);
  CHECK_THROWS_WITH(fail_after(5, 10s), Catch::Contains("as a failure"));  // memory after 3, disks after 5
  CHECK(count(kept, "checkpoint_") == 1);
  CHECK(count(disks, "checkpoint_") == 1);
  CHECK(MemoryRun(project, {.every = 1h}).steps.done == 3);
  state.wait_for_everyone();
  CHECK_THROWS_WITH(fail_after(1, 10s), Catch::Contains("as a failure"));  // loading begins an interval
  CHECK(count(kept, "checkpoint_") == 1);
  CHECK(MemoryRun(project, {}, local).steps.done == 5);
}

TEST_CASE("checkpoints on nodes' disks belong to their run: one that begins again in its place does not find them") {
  const State state;
  const Folder folder(state, "node_levels");
  const auto project = folder.path() / "project";
  if (state.is_main_process()) fs::create_directories(folder.path() / "disks");
  state.wait_for_everyone();
  const LocalCheckpointOptions local{.every_steps = 1, .folder = folder.path() / "disks"};
  CHECK_THROWS([&] {
    MemoryRun run(project, {}, local);
    run.train(2);
    throw Error({.what = "as a failure"});
  }());
  CHECK(MemoryRun(project, {}, local).steps.done == 2);
  state.wait_for_everyone();
  if (state.is_main_process()) fs::remove_all(project);
  state.wait_for_everyone();
  CHECK(MemoryRun(project, {}, local).steps.done == 0);
}

TEST_CASE("no checkpoints are kept in memory where one rank cannot see the keeper's folder") {
  const State state;
  const Folder folder(state, "memory_checkpoints");
  const RestoredProcess restored;
  const auto kept = kept_in(folder, state);
  if (state.is_last_process()) setenv(kept_variable, std::string(1000, 'x').c_str(), 1);
  MemoryRun(folder.path() / "project").train(3);
  CHECK(count(kept, "run-") == 0);
}

TEST_CASE("ranks in other working folders keep checkpoints of one project in memory") {
  const State state;
  const Folder folder(state, "memory_checkpoints");
  const RestoredProcess restored;
  const auto kept = kept_in(folder, state);
  const auto own = folder.path() / std::to_string(state.process_index());
  fs::create_directory(own);
  fs::current_path(own);
  MemoryRun("project").train(2);
  CHECK(count(kept, "run-") == 1);
  CHECK(count(kept, "checkpoint_") == 1);
  CHECK(MemoryRun("project").steps.done == 2);
  state.wait_for_everyone();
}

TEST_CASE("a run continues without checkpoints in memory if they do not fit, or the program has state hooks") {
  const State state;
  const Folder folder(state, "memory_checkpoints");
  const RestoredProcess restored;
  const auto kept = kept_in(folder, state);
  MemoryRun full(folder.path() / "full", {.every_steps = 1, .max_bytes = 100});
  full.train(2);
  MemoryRun hooked(folder.path() / "hooked");
  const auto hook = hooked.accelerator.register_save_state_pre_hook([](auto&&...) {});
  hooked.train(3);
  CHECK(count(kept, "checkpoint_") == 0);
}

TEST_CASE("the mesh of a manifest has axes of more than one rank, and replicas or shards alone are data") {
  using Mesh = std::map<std::string, std::int64_t>;
  const auto of = [](const parallel::MeshShape::Request& axes, int ranks) {
    return accelerator::mesh_of(parallel::MeshShape(axes, ranks));
  };
  CHECK(of({}, 1) == Mesh{{"data", 1}});
  CHECK(of({}, 4) == Mesh{{"data", 4}});
  CHECK(of({.shard = 4, .tensor = 2}, 8) == Mesh{{"data", 4}, {"tensor", 2}});
  CHECK(of({.replicate = 2, .shard = 4}, 8) == Mesh{{"replicate", 2}, {"shard", 4}});
}
