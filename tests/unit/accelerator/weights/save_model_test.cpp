// save_model writes the same bytes as Python. tests/tools/python-weights.py wrote python_weights.
#include <hortator/hortator.hpp>

#include "formats/safetensors/source.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/weights/weights_model.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using test::filled;
using test::python;
using test::WeightsNet;
namespace fs = std::filesystem;

namespace {

void check_same_files(const fs::path& ours, const fs::path& theirs) {
  CHECK(test::names_in(ours) == test::names_in(theirs));
  for (const auto& name : test::names_in(theirs)) {
    INFO(name);
    CHECK(test::content_of(ours / name) == test::content_of(theirs / name));
  }
}

}  // namespace

TEST_CASE("a model is written byte for byte as Accelerate writes it, by any number of ranks") {
  test::Folder folder(State(), "save_model");
  Accelerator accelerator;
  const auto net = filled();
  accelerator.save_model(net, folder.path() / "sharded", {.max_shard_size = "0.1KB"});
  check_same_files(folder.path() / "sharded", python / "sharded");
  accelerator.save_model(net, folder.path() / "whole");
  check_same_files(folder.path() / "whole", python / "whole");
}

TEST_CASE("a prepared model is written byte for byte as Accelerate writes it") {
  test::Folder folder(State(), "save_prepared");
  Accelerator accelerator;
  auto net = filled();
  auto model = accelerator.prepare(net);
  accelerator.save_model(model, folder.path(), {.max_shard_size = "100"});
  check_same_files(folder.path(), python / "sharded");
}

TEST_CASE("each save replaces the files of the previous one, and no others") {
  test::Folder folder(State(), "resave");
  Accelerator accelerator;
  const auto net = filled();
  accelerator.save_model(net, folder.path(), {.max_shard_size = "0.1KB"});
  const auto write = [&](const char* name) {
    if (accelerator.is_main_process()) std::ofstream(folder.path() / name) << "mine";
    accelerator.wait_for_everyone();
  };
  write("config.json");
  write("model-00001.safetensors");
  write("pytorch_model.bin");
  const std::set<std::string> others = {"config.json", "model-00001.safetensors", "pytorch_model.bin"};
  accelerator.save_model(net, folder.path());
  auto expected = others;
  expected.insert("model.safetensors");
  CHECK(test::names_in(folder.path()) == expected);
  accelerator.wait_for_everyone();
  accelerator.save_model(net, folder.path(), {.max_shard_size = "0.1KB"});
  expected = others;
  for (const auto& name : test::names_in(python / "sharded")) expected.insert(name);
  CHECK(test::names_in(folder.path()) == expected);
  accelerator.wait_for_everyone();
  accelerator.save_model(net, folder.path(), {.max_shard_size = "0.1KB"});
  CHECK(test::names_in(folder.path()) == expected);
  CHECK(test::content_of(folder.path() / "config.json") == "mine");
}

TEST_CASE("tensors can have other names in the files, and are loaded by them") {
  test::Folder folder(State(), "save_renamed");
  Accelerator accelerator;
  const Renaming rename{{"", "model"}, {"model.norm", "model.ln"}};
  accelerator.save_model(filled(), folder.path(), {.rename = rename});
  const SafetensorsFile file(folder.path() / "model.safetensors");
  CHECK(file.contains("model.embed.weight"));
  CHECK(file.contains("model.ln.running_var"));
  WeightsNet net;
  accelerator.load_checkpoint_in_model(net, folder.path(), {.rename = rename.reversed()});
  CHECK(test::same_parameters(*net, *filled()));
  CHECK_THROWS_WITH(accelerator.save_model(filled(), folder.path() / "clash", {.rename = {{"norm", "hidden"}}}),
                    ContainsSubstring("Two tensors of the model become 'hidden.weight'"));
}

TEST_CASE("a model that cannot be saved is refused on all ranks, and leaves no files") {
  test::Folder folder(State(), "save_refused");
  Accelerator accelerator;
  auto net = filled();
  CHECK_THROWS_WITH(accelerator.save_model(net, folder.path(), {.max_shard_size = "much"}),
                    ContainsSubstring("byte count 'much'"));
  CHECK_THROWS_WITH(accelerator.save_model(net, ""), ContainsSubstring("No folder to save to"));
  CHECK_THROWS_WITH(accelerator.save_model(
                        torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(2).affine(false).track_running_stats(false)),
                        folder.path()),
                    ContainsSubstring("no parameters and no buffers"));
  net->hidden->weight.set_data(at::zeros({5, 4}, at::kComplexDouble));
  CHECK_THROWS_WITH(accelerator.save_model(net, folder.path()),
                    ContainsSubstring("'hidden.weight'") && ContainsSubstring("no such type"));
  torch::nn::Module empty;
  empty.register_buffer("numbers", at::empty({2}, at::TensorOptions(at::kMeta)));
  CHECK_THROWS_WITH(accelerator.save_model(empty, folder.path()),
                    ContainsSubstring("'numbers'") && ContainsSubstring("meta device"));
  CHECK_FALSE(fs::exists(folder.path()));
  accelerator.wait_for_everyone();
  if (accelerator.is_main_process()) std::ofstream(folder.path()) << "a file";
  accelerator.wait_for_everyone();
  CHECK_THROWS_WITH(accelerator.save_model(filled(), folder.path()), ContainsSubstring("is not a folder"));
}

TEST_CASE("a model is saved in another type, and keeps its own") {
  test::Folder folder(State(), "save_typed");
  for (const int stage : {0, 3}) {
    Accelerator accelerator({.zero = {.stage = stage}});
    auto net = filled();
    const auto expected = test::tensors_of_net(*filled());
    auto model = accelerator.prepare(net);
    for (const bool safe : {true, false}) {
      INFO("stage " << stage << (safe ? ", safetensors" : ", torch.save"));
      const auto target = folder.path() / (safe ? "safe" : "pickled");
      accelerator.save_model(model, target,
                             {.max_shard_size = "0.1KB", .safe_serialization = safe, .dtype = at::kBFloat16});
      WeightsNet loaded;
      accelerator.load_checkpoint_in_model(loaded, target, {.dtype = at::kBFloat16});
      for (const auto& [name, tensor] : test::tensors_of_net(*loaded)) {
        INFO(name);
        const auto& whole = expected.at(name);
        CHECK(at::equal(tensor, whole.is_floating_point() ? whole.to(at::kBFloat16) : whole));
      }
      const auto source = weights::open_weights(target);
      CHECK(source->spec("hidden.weight").type == at::kBFloat16);
      CHECK(source->spec("norm.num_batches_tracked").type == at::kLong);
    }
    CHECK(net->parameters()[0].scalar_type() == at::kFloat);
    CHECK_THROWS_WITH(accelerator.save_model(model, folder.path(), {.dtype = at::kLong}),
                      ContainsSubstring("Weights were to become int64"));
  }
}

TEST_CASE("a number that is too large for the type in the files is an error on all ranks") {
  test::Folder folder(State(), "save_too_large");
  Accelerator accelerator;
  torch::nn::Module module;
  module.register_buffer("mask", at::tensor({0.F, -std::numeric_limits<float>::infinity()}));
  module.register_parameter("scale", at::full({3}, 1e6));
  for (const bool safe : {true, false}) {
    CHECK_THROWS_WITH(accelerator.save_model(module, folder.path(), {.safe_serialization = safe, .dtype = at::kHalf}),
                      ContainsSubstring("'scale' does not fit into float16"));
    accelerator.save_model(module, folder.path(), {.safe_serialization = safe, .dtype = at::kBFloat16});
  }
}

TEST_CASE("the size of shards counts the type in the files") {
  test::Folder folder(State(), "save_typed_shards");
  Accelerator accelerator;
  torch::nn::Module module;
  for (const auto* name : {"a", "b"}) module.register_parameter(name, at::zeros({64}));
  accelerator.save_model(module, folder.path(), {.max_shard_size = "256", .dtype = at::kHalf});
  CHECK(test::names_in(folder.path()) == std::set<std::string>{"model.safetensors"});
}

TEST_CASE("different models on ranks are an error instead of a mixture") {
  test::Folder folder(State(), "save_differing");
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(accelerator.save_model(filled(accelerator.is_main_process()), folder.path()),
                    ContainsSubstring("The model to save"));
}

TEST_CASE("tensors of any strides, and views, are saved with their values") {
  test::Folder folder(State(), "save_strides");
  Accelerator accelerator;
  struct Strided : torch::nn::Module {
    Strided() {
      const auto base = at::arange(3000).to(at::kFloat).view({50, 60});
      register_parameter("transposed", base.t());
      register_parameter("rows", base.slice(0, 10, 40, 2));
      register_parameter("base", base);
    }
  } module;
  accelerator.save_model(module, folder.path());
  const SafetensorsFile file(folder.path() / "model.safetensors");
  for (const auto& item : module.named_parameters()) CHECK(at::equal(file.get(item.key()), item.value()));
}

TEST_CASE("a state dict in the format of torch.save keeps tied tensors tied") {
  test::Folder folder(State(), "save_pickled");
  Accelerator accelerator;
  accelerator.save_model(filled(), folder.path() / "whole", {.safe_serialization = false});
  CHECK(test::names_in(folder.path() / "whole") == std::set<std::string>{"pytorch_model.bin"});
  accelerator.save_model(filled(), folder.path() / "shards", {.max_shard_size = "0.1KB", .safe_serialization = false});
  CHECK(test::names_in(folder.path() / "shards").contains("pytorch_model.bin.index.json"));
  for (const auto* format : {"whole", "shards"}) {
    WeightsNet net;
    accelerator.load_checkpoint_in_model(net, folder.path() / format);
    CHECK(test::same_parameters(*net, *filled()));
  }
}

TEST_CASE("files for Python to read", "[.for_python]") {
  Accelerator accelerator;
  const fs::path folder = "for_python";
  const auto net = filled();
  accelerator.save_model(net, folder / "sharded", {.max_shard_size = "0.1KB"});
  accelerator.save_model(net, folder / "whole");
  accelerator.save_model(net, folder / "pickled", {.safe_serialization = false});
  accelerator.save_model(net, folder / "pickled_shards", {.max_shard_size = "0.1KB", .safe_serialization = false});
  accelerator.save_model(net, folder / "half", {.dtype = at::kBFloat16});
  accelerator.save_model(net, folder / "half_pickled", {.safe_serialization = false, .dtype = at::kBFloat16});
  WeightsNet offloaded;
  load_checkpoint_in_model(
      offloaded, folder / "whole",
      {.dtype = at::kBFloat16, .device_map = {{"", DevicePlacement::disk()}}, .offload_folder = folder / "offloaded"});
  struct Types : torch::nn::Module {
    Types() {
      const SafetensorsFile file(python / "all_types.safetensors");
      for (const auto& name : file.names()) {
        const auto point = name.rfind('.');
        (point == std::string::npos ? *this : *a).register_buffer(name.substr(point + 1), file.get(name));
      }
      register_module("a", a);
    }
    std::shared_ptr<torch::nn::Module> a = std::make_shared<torch::nn::Module>();
  } types;
  accelerator.save_model(types, folder / "types");
  if (accelerator.is_main_process())
    fs::rename(folder / "types" / "model.safetensors", folder / "all_types.safetensors");
}

// Run by weights_in_python.sh: Python has written `before` and reads `after`.
TEST_CASE("a model of transformers is loaded and saved", "[.transformers]") {
  Accelerator accelerator;
  const fs::path folder = "transformers";
  const SafetensorsFile file(folder / "before" / "model.safetensors");
  std::map<std::string, std::shared_ptr<torch::nn::Module>> modules = {{"", std::make_shared<torch::nn::Module>()}};
  const auto module_at = [&](const std::string& path, const auto& self) -> torch::nn::Module& {
    auto& module = modules[path];
    if (module == nullptr) {
      const auto point = path.rfind('.');
      auto& parent = self(point == std::string::npos ? "" : path.substr(0, point), self);
      module = parent.register_module(path.substr(point + 1), std::make_shared<torch::nn::Module>());
    }
    return *module;
  };
  for (const auto& name : file.names()) {
    const auto point = name.rfind('.');
    module_at(name.substr(0, point), module_at)
        .register_parameter(name.substr(point + 1), at::zeros_like(file.get(name)));
  }
  auto& embedding = module_at("transformer.wte", module_at);
  module_at("lm_head", module_at).register_parameter("weight", embedding.named_parameters()["weight"]);
  auto& model = *modules.at("");
  accelerator.load_checkpoint_in_model(model, folder / "before");
  accelerator.save_model(model, folder / "after", {.max_shard_size = "2KB"});
}
