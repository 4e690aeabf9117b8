#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <hortator/bigmodel/big_models.hpp>
#include <span>
#include <string>
#include <vector>

namespace hortator::accelerator {

/// A tensor of a module and where it is placed. Tied tensors appear once.
struct PlacedTensor {
  std::string name = {};  ///< the first of its names
  at::Tensor tensor = {};
  std::vector<at::Tensor> others = {};  ///< further tensors that are the same elements of the same memory
  at::ScalarType type = at::kFloat;     ///< that it will have
  DevicePlacement place = DevicePlacement::cpu();
  bool is_buffer = false;

  Bytes bytes() const { return static_cast<Bytes>(tensor.numel()) * static_cast<Bytes>(c10::elementSize(type)); }
};

using TypeOf = std::function<at::ScalarType(const std::string& name, const at::Tensor& tensor)>;

/// Lists the module's tensors, all placed on the CPU.
std::vector<PlacedTensor> tensors_to_place(const torch::nn::Module& module, const TypeOf& type_of);

/// Places the tensors as the map says; a tensor with several names goes to the fastest of their places. Buffers that
/// the map puts on disk stay on the host unless `offload_buffers`.
void place(std::vector<PlacedTensor>& tensors, const torch::nn::Module& module, const DeviceMap& map,
           bool offload_buffers);

/// Throws UsageError if the tensor is a part of another one's memory: on disk, tensors of the same memory are one page.
void require_own_memory(const PlacedTensor& one);

Bytes bytes_on(std::span<const PlacedTensor> tensors, const DevicePlacement& place);

/// The size of the largest layer on disk: a module's own tensors, without those of its submodules.
Bytes largest_layer_on_disk(std::span<const PlacedTensor> tensors);

}  // namespace hortator::accelerator
