// The memory that loading and saving weights needs. A separate program, because other tests leave freed memory.
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <hortator/hortator.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/write/save.hpp"
#include "formats/torch/pickle/writer.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "weights/filling.hpp"

using namespace hortator;
using test::extra_memory;
using test::mebibyte;

namespace {

constexpr int layers = 8;
constexpr std::int64_t layer_bytes = 32 * mebibyte;
constexpr std::int64_t allowed = 64 * mebibyte;  // in addition to the model

struct Layers : torch::nn::Module {
  explicit Layers(at::ScalarType type = at::kFloat) {
    const auto elements = layer_bytes / static_cast<std::int64_t>(c10::elementSize(type));
    for (int i = 0; i < layers; ++i) register_buffer("layer" + std::to_string(i), at::empty({elements}, type).fill_(i));
  }
};

void check_loaded(const torch::nn::Module& model) {
  for (int i = 0; i < layers; ++i) {
    auto layer = model.named_buffers()["layer" + std::to_string(i)];
    CHECK(layer.min().item<double>() == i);
    CHECK(layer.max().item<double>() == i);
    layer.fill_(77);
  }
}

}  // namespace

TEST_CASE("saving a model, and loading it from any kind of file, needs less than 64 MiB of additional memory") {
  Accelerator accelerator;
  test::Folder folder(State(), "weights_cost");
  Layers model;
  const auto sharded = folder.path() / "sharded";
  CHECK(extra_memory([&] { accelerator.save_model(model, sharded, {.max_shard_size = "64MB"}); }) < allowed);
  CHECK(extra_memory([&] { accelerator.save_model(model, folder.path() / "whole"); }) < allowed);
  const auto pickle = folder.path() / "model.pt";
  formats::NamedSpecs specs;
  for (const auto& item : model.named_buffers()) specs.emplace_back(item.key(), formats::spec_of(item.value()));
  CHECK(extra_memory([&] {
          if (!accelerator.is_main_process()) return;
          formats::write_pickle(
              pickle, specs, [&](const std::string& name) { return model.named_buffers()[name]; }, [](std::int64_t) {});
        }) < allowed);
  accelerator.wait_for_everyone();
  checkpoint::Snapshot state;
  for (const auto& item : model.named_buffers()) state.common.put("models/0/" + item.key(), item.value());
  const auto checkpoint =
      checkpoint::save(accelerator::Training::of(accelerator).host(), folder.path() / "checkpoint", state);
  for (const auto& stored : {sharded, folder.path() / "whole", pickle, checkpoint}) {
    INFO(stored);
    CHECK(extra_memory([&] { accelerator.load_checkpoint_in_model(model, stored); }) < allowed);
    check_loaded(model);
    CHECK(extra_memory([&] { load_checkpoint_in_model(model, stored); }) < allowed);
    check_loaded(model);
  }
}

TEST_CASE("converting types, and loading what one rank reads for all, needs less than 64 MiB of additional memory") {
  Accelerator accelerator;
  test::Folder folder(State(), "weights_cost_conversion");
  accelerator.save_model(Layers(), folder.path());
  struct Halves : torch::nn::Module {
    Halves() {
      for (int i = 0; i < layers; ++i)
        register_buffer("layer" + std::to_string(i), at::zeros({layer_bytes / 4}, at::kBFloat16));
    }
  } halves;
  CHECK(extra_memory([&] { accelerator.load_checkpoint_in_model(halves, folder.path()); }) < allowed);
  check_loaded(halves);
  Layers model;
  const auto source = weights::open_weights(folder.path());
  std::vector<weights::Filling> fillings;
  for (const auto& item : model.named_buffers()) fillings.push_back({.stored = item.key(), .tensor = item.value()});
  auto& comm = accelerator::Training::of(accelerator).channels.communicator_of({});
  CHECK(extra_memory([&] { weights::filling_together(comm, *source, fillings)(); }) < allowed);
  check_loaded(model);
}
