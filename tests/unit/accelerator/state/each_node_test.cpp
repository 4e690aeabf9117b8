// Checkpoints on nodes that share no disk: each node has a whole one.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "checkpoint/read/reader.hpp"
#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;
using test::Folder;
namespace fs = std::filesystem;

namespace {

// Two nodes: of one rank each, or of two on three and four ranks.
int ranks_a_node(const State& state) { return state.num_processes() > 2 ? 2 : 1; }

int own_node(const State& state) { return static_cast<int>(state.process_index()) / ranks_a_node(state); }

/// The disk of a node, as a folder beside those of the others.
fs::path disk(const Folder& folder, int node) { return folder.path() / ("disk_" + std::to_string(node)); }

struct NodeRun {
  NodeRun(const fs::path& project, int stage, const ProjectOptions& more = {})
      : accelerator(options(project, stage, more)) {}

  static AcceleratorOptions options(const fs::path& project, int stage, const ProjectOptions& more) {
    AcceleratorOptions all;
    all.zero.stage = stage;
    all.project = more;
    all.project.dir = project;
    all.project.save_on_each_node = true;
    return all;
  }
  void train(int steps = 1) {
    for (int i = 0; i < steps; ++i) {
      accelerator.backward(model(at::ones({2, 3})).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  fs::path train_and_save() {
    train();
    auto folder = accelerator.save_state();
    accelerator.wait_for_everyone();
    return folder;
  }
  std::vector<at::Tensor> weights() {
    std::vector<at::Tensor> all;
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) all.push_back(parameter.detach().clone());
    return all;
  }

  Accelerator accelerator;
  test::Net net{};
  torch::optim::AdamW plain{net->parameters(), torch::optim::AdamWOptions(1e-2)};
  Model<test::Net> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(plain);
};

bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

/// What `act` throws; empty if it throws nothing.
template <typename Act>
std::string problem_in(const Act& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

struct TwoNodes {
  TwoNodes() { scale::pretend_nodes_of(ranks_a_node(State())); }
  ~TwoNodes() { scale::pretend_nodes_of(0); }
};

}  // namespace

TEST_CASE("each node gets a whole checkpoint of its own, which any number of ranks loads") {
  const TwoNodes nodes;
  const State state;
  const Folder folder(state, "each_node");
  for (const int stage : {0, 2, 3}) {
    INFO("stage " << stage);
    const auto own = disk(folder, own_node(state)) / std::to_string(stage);
    std::vector<at::Tensor> saved;
    {
      NodeRun run(own, stage);
      CHECK(run.train_and_save() == fs::weakly_canonical(own / "checkpoint"));
      saved = run.weights();
      run.accelerator.wait_for_everyone();
      const auto files = files_in(own / "checkpoint");
      for (const int node : {0, 1}) {
        const auto there = disk(folder, node) / std::to_string(stage) / "checkpoint";
        CHECK(checkpoint::is_whole(there));
        CHECK(files_in(there) == files);
      }
      run.accelerator.wait_for_everyone();
      run.train(2);
      CHECK_FALSE(are_equal(run.weights(), saved));
      run.accelerator.load_state();
      CHECK(are_equal(run.weights(), saved));
      run.train();
      run.accelerator.load_state(own / "checkpoint");
      CHECK(are_equal(run.weights(), saved));
      run.train();
      run.accelerator.load_state(fs::relative(own / "checkpoint"));
      CHECK(are_equal(run.weights(), saved));
    }
    {
      NodeRun relative(fs::relative(own), stage);
      relative.accelerator.load_state();
      CHECK(are_equal(relative.weights(), saved));
    }
    // on one node, from the disk of another one
    scale::pretend_nodes_of(0);
    NodeRun later(disk(folder, 1) / std::to_string(stage), stage == 0 ? 3 : 0);
    later.accelerator.load_state();
    CHECK(are_equal(later.weights(), saved));
    later.accelerator.wait_for_everyone();
    scale::pretend_nodes_of(ranks_a_node(state));
  }
}

TEST_CASE("a save that is killed while nodes put their folders in place is complete on all of them") {
  const TwoNodes nodes;
  const State state;
  const Folder folder(state, "each_node");
  const auto own = disk(folder, own_node(state));
  const auto checkpoint = own / "checkpoint";
  NodeRun run(own, 2);
  for (const int behind : {0, 1}) {
    INFO("node " << behind << " has not renamed its new folder");
    const bool is_behind = state.is_local_main_process() && own_node(state) == behind;
    run.train_and_save();
    if (is_behind) fs::copy(checkpoint, own / "before");
    run.train_and_save();
    const auto saved = run.weights();
    if (is_behind) {
      fs::rename(checkpoint, own / "checkpoint.new-20261121T075530.123456-9f3a51c2");
      fs::rename(own / "before", checkpoint);
    }
    run.accelerator.wait_for_everyone();
    run.train();
    run.accelerator.load_state();
    CHECK(are_equal(run.weights(), saved));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("a node without a copy is an error on all ranks, and with numbers the checkpoint before is loaded") {
  const TwoNodes nodes;
  const State state;
  const Folder folder(state, "each_node");
  const auto own = disk(folder, own_node(state));
  NodeRun run(own, 0, {.automatic_checkpoint_naming = true, .total_limit = 2});
  for (int i = 0; i < 2; ++i) run.train_and_save();
  const auto before = run.weights();
  const auto last = run.train_and_save();
  for (const int node : {0, 1}) {
    CHECK_FALSE(fs::exists(disk(folder, node) / "checkpoints" / "checkpoint_0"));
    CHECK(fs::exists(disk(folder, node) / "checkpoints" / "checkpoint_1"));
  }
  run.accelerator.wait_for_everyone();
  if (state.is_local_main_process() && own_node(state) == 1) fs::remove_all(last);
  run.accelerator.wait_for_everyone();
  CHECK_THAT(problem_in([&] { run.accelerator.load_state(last); }), ContainsSubstring("has no copy of the checkpoint"));
  run.accelerator.load_state();
  CHECK(are_equal(run.weights(), before));
}

TEST_CASE("save_model writes the whole model on each node") {
  const TwoNodes nodes;
  const State state;
  const Folder folder(state, "each_node");
  for (const int stage : {0, 2, 3}) {
    for (const bool is_safe : {true, false}) {
      INFO("stage " << stage << (is_safe ? ", safetensors" : ", pickles"));
      const auto name = std::to_string(stage) + (is_safe ? "_safe" : "");
      NodeRun run(disk(folder, own_node(state)), stage);
      run.train();
      run.accelerator.save_model(run.model, disk(folder, own_node(state)) / name,
                                 {.max_shard_size = "40", .safe_serialization = is_safe});
      run.accelerator.wait_for_everyone();
      const auto files = files_in(disk(folder, own_node(state)) / name);
      CHECK(files.size() > 2);
      for (const int node : {0, 1}) CHECK(files_in(disk(folder, node) / name) == files);
      auto whole = test::Net();
      run.accelerator.load_checkpoint_in_model(*whole, disk(folder, 1) / name);
      CHECK(are_equal(whole->parameters(), run.weights()));
      run.accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("nodes that see one folder, and what one disk a node cannot do, are errors on all ranks") {
  const TwoNodes nodes;
  const State state;
  const Folder folder(state, "each_node");
  NodeRun run(folder.path() / "shared", 0);
  run.train();
  CHECK_THAT(problem_in([&] { run.accelerator.save_state(); }), ContainsSubstring("Several nodes see the same folder"));
  run.accelerator.wait_for_everyone();
  for (const auto& entry : fs::directory_iterator(folder.path() / "shared"))
    CHECK_FALSE(entry.path().filename().string().starts_with("checkpoint"));
  CHECK_THAT(problem_in([&] { run.accelerator.save_model(run.model, folder.path() / "model"); }),
             ContainsSubstring("Several nodes see the same folder"));
  run.accelerator.wait_for_everyone();
  CHECK(fs::is_empty(folder.path() / "model"));
  const auto hook = run.accelerator.register_save_state_pre_hook([](auto&&...) {});
  CHECK_THAT(problem_in([&] { run.accelerator.save_state(disk(folder, own_node(state))); }),
             ContainsSubstring("state hook"));
  for (const bool is_asynchronous : {true, false}) {
    auto options = NodeRun::options(folder.path(), 0, {});
    options.checkpoint.asynchronous = is_asynchronous;
    options.checkpoint.incremental = !is_asynchronous;
    CHECK_THAT(problem_in([&] { Accelerator refused(options); }), ContainsSubstring("project.save_on_each_node"));
  }
}
