// Exported models whose parts are in memory and on disk, by the names and classes that their modules have in Python.
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/models/exported.hpp>

#include "../accelerator/fixtures.hpp"
#include "../exported/stored_models.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

const DevicePlacement cpu = DevicePlacement::cpu(), disk = DevicePlacement::disk();

at::Tensor input_of(const std::string& name) { return stored_models::tensors(name).get("input_0"); }
at::Tensor plain_result(const std::string& name) {
  const at::NoGradGuard no_grad;
  return exported_module(stored_models::file(name))->forward(input_of(name))[0];
}

/// A checkpoint of each rank's own, of a stored model.
class OwnCheckpoint {
 public:
  explicit OwnCheckpoint(const std::string& name) : folder_(state_, "exported_dispatch_" + name) {
    Accelerator accelerator;
    accelerator.save_model(exported_module(stored_models::file(name)), weights());
    std::filesystem::create_directories(own());
  }
  const State& state() const { return state_; }
  std::filesystem::path weights() const { return folder_.path() / "weights"; }
  std::filesystem::path own() const { return folder_.path() / std::to_string(state_.process_index()); }

 private:
  State state_;
  test::Folder folder_;
};

std::shared_ptr<ExportedModule> without_values(const std::string& name) {
  return init_empty_weights([&] { return exported_module(stored_models::file(name)); });
}

}  // namespace

TEST_CASE("modules of an exported model have the classes that they have in Python") {
  const auto mlp = exported_module(stored_models::file("mlp"));
  const auto modules = mlp->named_modules();
  CHECK(modules["layers"]->name() == "Sequential");
  CHECK(modules["layers.0"]->name() == "Linear");
  CHECK(exported_module(stored_models::file("tied"))->named_modules()["embedding"]->name() == "Embedding");
}

TEST_CASE("a device map of an exported model is made by its modules, and splits none of the given classes") {
  const auto mlp = exported_module(stored_models::file("mlp"));
  const auto first = DevicePlacement::cuda(0), second = DevicePlacement::cuda(1);
  const MaxMemory one_layer = {{first, 0}, {second, compute_module_sizes(*mlp).at("layers.0")}, {cpu, 1e9}};
  CHECK(infer_auto_device_map(*mlp, {.max_memory = one_layer}) == DeviceMap{{"layers.0", second}, {"layers.2", cpu}});
  CHECK(infer_auto_device_map(*mlp, {.max_memory = one_layer, .no_split_module_classes = {"Sequential"}}) ==
        DeviceMap{{"layers", cpu}});
}

TEST_CASE("an exported model that is loaded in memory and on disk computes bit by bit what it computes in memory") {
  const std::map<std::string, std::vector<DeviceMap>> maps = {
      {"mlp", {{{"", disk}}, {{"layers.0", cpu}, {"layers.2", disk}}, {{"layers.0", disk}, {"layers.2", cpu}}}},
      {"attention", {{{"qkv", disk}, {"out", cpu}}, {{"qkv.weight", cpu}, {"qkv.bias", disk}, {"out", disk}}}},
      {"tied", {{{"embedding", disk}, {"middle", cpu}}, {{"", disk}}}}};
  for (const auto& [name, of_model] : maps) {
    const OwnCheckpoint checkpoint(name);
    const auto expected = plain_result(name);
    for (const auto& map : of_model) {
      INFO(name);
      auto model = load_checkpoint_and_dispatch(checkpoint.state(), without_values(name), checkpoint.weights(),
                                                {.device_map = map});
      CHECK(model.counters().on_disk > 0);
      const at::NoGradGuard no_grad;
      for (int i = 0; i < 2; ++i) CHECK(model(input_of(name))[0].equal(expected));
      auto from_memory =
          dispatch_model(exported_module(stored_models::file(name)), map, {.offload_folder = checkpoint.own()});
      CHECK(from_memory.counters().on_disk > 0);
      CHECK(from_memory(input_of(name))[0].equal(expected));
    }
  }
}

TEST_CASE("an exported model on disk has the gradients that it has in memory") {
  const OwnCheckpoint checkpoint("mlp");
  const auto plain = exported_module(stored_models::file("mlp"));
  plain->forward(input_of("mlp"))[0].square().sum().backward();
  auto model = dispatch_model(exported_module(stored_models::file("mlp")), {{"layers.0", disk}, {"layers.2", cpu}},
                              {.offload_folder = checkpoint.own()});
  model(input_of("mlp"))[0].square().sum().backward();
  const auto found = model.unwrap()->parameters(), expected = plain->parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i].grad().equal(expected[i].grad()));
}

TEST_CASE("a device map with a module that an exported model does not have is refused by its name") {
  const OwnCheckpoint checkpoint("mlp");
  CHECK_THROWS_WITH(load_checkpoint_and_dispatch(checkpoint.state(), without_values("mlp"), checkpoint.weights(),
                                                 {.device_map = DeviceMap{{"layers", cpu}, {"head", disk}}}),
                    ContainsSubstring("names that the model does not have: head"));
  CHECK_THROWS_WITH(dispatch_model(exported_module(stored_models::file("mlp")), {{"layers.0", cpu}}),
                    ContainsSubstring("layers.2"));
}
