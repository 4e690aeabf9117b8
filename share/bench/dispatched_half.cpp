#include "bench/dispatched_half.hpp"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>

#include "formats/file/raw_file.hpp"
#include "formats/safetensors/writer.hpp"

namespace hortator::bench {
namespace {

void write_safetensors_of(const torch::nn::Sequential& net, const std::filesystem::path& path) {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, formats::TensorSpec> specs;
  for (const auto& item : net->named_parameters()) {
    tensors.emplace(item.key(), item.value());
    specs.emplace(item.key(), formats::spec_of(item.value()));
  }
  const auto plan = formats::plan_safetensors(specs);
  std::filesystem::remove(path);
  auto file = formats::RawFile::create(path);
  file.write_at(0, plan.beginning.data(), plan.beginning.size());
  for (const auto& place : plan.tensors) {
    const auto& tensor = tensors.at(place.name);
    file.write_at(place.offset, tensor.const_data_ptr(), tensor.nbytes());
  }
  file.sync();
  file.close();
}

}  // namespace

DispatchedHalf::DispatchedHalf(const State& state, const std::filesystem::path& folder, const LayerStack& stack)
    : stack_(stack),
      path_(folder / "layers.safetensors"),
      limit_(static_cast<std::uint64_t>(stack.bytes()) / 2),
      piece_(LayerStack::piece_bytes) {
  std::filesystem::create_directories(folder);
  write_safetensors_of(stack.in_memory(), path_);
  const auto net = init_empty_weights([&] { return LayerStack::make_layers(stack.layers()); });
  model_.emplace(load_checkpoint_and_dispatch(state, net, path_,
                                              {.max_memory = {{DevicePlacement::cpu(), static_cast<Bytes>(limit_)}}}));
}

DispatchedHalf::~DispatchedHalf() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void DispatchedHalf::forward() {
  const c10::InferenceMode inference;
  stack_.check((*model_)(stack_.input()));
}

void DispatchedHalf::read_what_is_on_disk() {
  const auto file = formats::RawFile::open_for_reading(path_);
  const auto end = counters().on_disk;
  for (std::uint64_t offset = 0; offset < end; offset += piece_.size())
    file.read_at(static_cast<std::int64_t>(offset), piece_.data(), std::min<std::size_t>(end - offset, piece_.size()));
}

void DispatchedHalf::drop_cache() { formats::RawFile::open_for_reading(path_).forget_cached(); }

}  // namespace hortator::bench
