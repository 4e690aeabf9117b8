#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <hortator/bigmodel/big_models.hpp>
#include <span>
#include <string>
#include <vector>

namespace hortator::accelerator {

/// A tensor of a module, each once, and where it goes.
struct PlacedTensor {
  std::string name = {};  ///< the first
  at::Tensor tensor = {};
  std::vector<at::Tensor> others = {};  ///< further tensors that are the same elements of the same memory
  at::ScalarType type = at::kFloat;     ///< that it is to have
  DevicePlacement place = DevicePlacement::cpu();
  bool is_buffer = false;

  Bytes bytes() const { return static_cast<Bytes>(tensor.numel()) * static_cast<Bytes>(c10::elementSize(type)); }
};

using TypeOf = std::function<at::ScalarType(const std::string& name, const at::Tensor& tensor)>;

/// All in memory, for now.
std::vector<PlacedTensor> tensors_to_place(const torch::nn::Module& module, const TypeOf& type_of);

/// Gives them the places that the map says; one with several names that of the fastest. Buffers go to disk if asked to,
/// else what would lie there lies on the host.
void place(std::vector<PlacedTensor>& tensors, const torch::nn::Module& module, const DeviceMap& map,
           bool offload_buffers);

Bytes bytes_on(std::span<const PlacedTensor> tensors, const DevicePlacement& place);

/// What the largest module on disk brings into memory at once: its own tensors, without those of modules below it.
Bytes largest_layer_on_disk(std::span<const PlacedTensor> tensors);

}  // namespace hortator::accelerator
