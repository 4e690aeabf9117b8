// Exported models whose parameters are divided among ranks, or in files, and that are written as files.
#include <torch/optim/adamw.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/models/exported.hpp>

#include "../accelerator/fixtures.hpp"
#include "../exported/stored_models.hpp"
#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

using Named = std::map<std::string, at::Tensor>;

/// Copies of parameters and buffers.
Named state_of(const torch::nn::Module& net) {
  Named state;
  for (const auto& item : net.named_parameters()) state.emplace(item.key(), item.value().detach().clone());
  for (const auto& item : net.named_buffers()) state.emplace(item.key(), item.value().clone());
  return state;
}

bool is_same(const Named& first, const Named& second) {
  return std::ranges::equal(
      first, second, [](const auto& a, const auto& b) { return a.first == b.first && a.second.equal(b.second); });
}

/// A run that has trained an exported model for two steps.
class TrainedRun {
 public:
  TrainedRun(const std::string& name, AcceleratorOptions options, bool is_deferred = false)
      : accelerator_(std::move(options)),
        net_(is_deferred ? construct_deferred([&] { return exported_module(stored_models::file(name)); })
                         : exported_module(stored_models::file(name))),
        adamw_(net_->parameters(), 1e-2),
        prepared_(accelerator_.prepare(net_, adamw_)) {
    const auto input = stored_models::tensors(name).get("input_0");
    auto& [model, optimizer] = prepared_;
    for (int i = 0; i < 2; ++i) {
      const auto x = input.is_floating_point() ? input + 0.1 * i : input;
      const auto loss_of = [](auto& model, auto& part) { return model(part)[0].square().mean(); };
      if (accelerator_.options().parallel.pipeline > 1) {
        accelerator_.pipeline_step(model, x, loss_of, {.micro_batches = 2});
      } else {
        accelerator_.backward(loss_of(model, x));
      }
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  /// What all ranks have together. @collective
  Named whole_state() {
    const auto whole = accelerator_.summon_full_parameters(std::get<0>(prepared_));
    return state_of(*net_);
  }
  Accelerator& accelerator() { return accelerator_; }
  ExportedModule& net() { return *net_; }

 private:
  Accelerator accelerator_;
  std::shared_ptr<ExportedModule> net_;
  torch::optim::AdamW adamw_;
  decltype(std::declval<Accelerator&>().prepare(net_, adamw_)) prepared_;
};

/// The state of the file that a run writes, and what the run has. @collective
void check_written(TrainedRun& run, const std::string& name, const std::filesystem::path& file) {
  const auto expected = run.whole_state();
  run.net().write(run.accelerator(), file);
  run.accelerator().wait_for_everyone();
  const auto written = state_of(*exported_module(file));
  CHECK(is_same(written, expected));
  CHECK_FALSE(is_same(written, state_of(*exported_module(stored_models::file(name)))));
}

TensorPlan plan_of(const std::string& name) {
  if (name == "mlp") return {{"layers.0", TensorDivision::columns}, {"layers.2", TensorDivision::rows}};
  return {{.pattern = "qkv", .division = TensorDivision::columns, .blocks = 3}, {"out", TensorDivision::rows}};
}

}  // namespace

TEST_CASE("all ranks write an exported model, whatever the stage of ZeRO, in memory, in files and between nodes") {
  const test::Folder folder(State(), "exported_files");
  for (const int ranks_a_node : {0, 1}) {
    scale::pretend_nodes_of(ranks_a_node);
    for (const auto* name : {"mlp", "tied", "in_place"}) {
      for (const int stage : {0, 2, 3}) {
        INFO(name << ", stage " << stage << ", ranks of a node " << ranks_a_node);
        TrainedRun run(name, {.zero = {.stage = stage}});
        check_written(run, name, folder.path() / "zero" / "trained.pt2");
      }
      const ZeroConfig in_files{.stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path()};
      TrainedRun run(name, {.zero = in_files}, /*is_deferred=*/true);
      check_written(run, name, folder.path() / "offloaded.pt2");
    }
  }
}

TEST_CASE("all ranks write an exported model that tensor ranks or stages of a pipeline have divided") {
  if (State().num_processes() != 2) return;
  const test::Folder folder(State(), "exported_divided_files");
  for (const auto* name : {"mlp", "attention"}) {
    INFO(name);
    TrainedRun divided(name, {.parallel = {.tensor = 2, .plan = plan_of(name)}});
    check_written(divided, name, folder.path() / "divided.pt2");
    TrainedRun staged(name, {.parallel = {.pipeline = 2}});
    check_written(staged, name, folder.path() / "staged.pt2");
  }
}

TEST_CASE("a parameter that is divided among ranks is not written by one of them") {
  scale::pretend_nodes_of(1);
  const State state;
  const test::Folder folder(state, "exported_of_one");
  if (state.num_processes() == 1) return;
  const auto check_refused = [&](AcceleratorOptions options) {
    TrainedRun run("mlp", std::move(options));
    CHECK_THROWS_WITH(run.net().write(folder.path() / "part.pt2"), ContainsSubstring("The parameter 'layers.") &&
                                                                       ContainsSubstring("' is divided among ranks") &&
                                                                       ContainsSubstring("write(accelerator, file)"));
  };
  check_refused({.zero = {.stage = 3}});
  if (state.num_processes() != 2) return;
  check_refused({.parallel = {.tensor = 2, .plan = plan_of("mlp")}});
  check_refused({.parallel = {.pipeline = 2}});
}

TEST_CASE("if the main process cannot write an exported model, all ranks throw and can write it elsewhere") {
  scale::pretend_nodes_of(1);
  const State state;
  const test::Folder folder(state, "exported_refused");
  TrainedRun run("mlp", {.zero = {.stage = 3}});
  state.on_main_process([&] {
    std::filesystem::create_directories(folder.path());
    std::ofstream(folder.path() / "file") << "not a folder";
  });
  state.wait_for_everyone();
  CHECK_THROWS_WITH(run.net().write(run.accelerator(), folder.path() / "file" / "trained.pt2"),
                    ContainsSubstring("Not a directory"));
  check_written(run, "mlp", folder.path() / "trained.pt2");
}

TEST_CASE("an exported model in files, or made without memory, is written by one rank") {
  const State state;
  const test::Folder folder(state, "exported_paged");
  const auto own = folder.path() / std::to_string(state.process_index());
  std::filesystem::create_directories(own);
  auto net = exported_module(stored_models::file("attention"));
  const auto offloaded = disk_offload(net, own, {.resident_bytes = 256, .page_bytes = 128});
  net->write(own / "offloaded.pt2");
  const auto expected = state_of(*exported_module(stored_models::file("attention")));
  CHECK(is_same(state_of(*exported_module(own / "offloaded.pt2")), expected));
  const auto late = construct_deferred([] { return exported_module(stored_models::file("attention")); });
  late->write(own / "deferred.pt2");
  CHECK(is_same(state_of(*exported_module(own / "deferred.pt2")), expected));
  state.wait_for_everyone();
}
