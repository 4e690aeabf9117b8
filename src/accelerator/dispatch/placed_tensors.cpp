#include "accelerator/dispatch/placed_tensors.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>
#include <unordered_map>

#include "bigmodel/device_map.hpp"
#include "core/text/text.hpp"
#include "weights/module_weights.hpp"

namespace hortator::accelerator {
namespace {

constexpr Bytes alignment_in_pages = 64;

std::string module_around(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(0, dot);
}

}  // namespace

std::vector<PlacedTensor> tensors_to_place(const torch::nn::Module& module, const TypeOf& type_of) {
  std::set<const at::TensorImpl*> buffers;
  for (const auto& buffer : module.buffers()) buffers.insert(buffer.unsafeGetTensorImpl());
  const auto weights = weights::weights_of(module);
  std::vector<PlacedTensor> placed;
  std::vector<std::size_t> place_of(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& [name, tensor, first] = weights[i];
    if (first == i) {
      place_of[i] = placed.size();
      placed.push_back({.name = name,
                        .tensor = tensor,
                        .type = type_of(name, tensor),
                        .is_buffer = buffers.contains(tensor.unsafeGetTensorImpl())});
      continue;
    }
    auto& one = placed[place_of[first]];
    const bool is_known =
        tensor.is_same(one.tensor) ||
        std::ranges::any_of(one.others, [&t = tensor](const auto& other) { return other.is_same(t); });
    if (!is_known) one.others.push_back(tensor);
  }
  return placed;
}

void place(std::vector<PlacedTensor>& tensors, const torch::nn::Module& module, const DeviceMap& map,
           bool offload_buffers) {
  std::unordered_map<std::string, PlacedTensor*> by_name;
  for (auto& one : tensors) by_name.emplace(one.name, &one);
  const auto weights = weights::weights_of(module);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto& one = *by_name.at(weights[weights[i].first].name);
    const auto& said = *bigmodel::placement_in(map, weights[i].name);
    const auto here = said.is_disk() && one.is_buffer && !offload_buffers ? DevicePlacement::cpu() : said;
    one.place = weights[i].first == i ? here : std::min(one.place, here);
  }
}

Bytes bytes_on(std::span<const PlacedTensor> tensors, const DevicePlacement& place) {
  Bytes bytes = 0;
  for (const auto& one : tensors) bytes += one.place == place ? one.bytes() : 0;
  return bytes;
}

Bytes largest_layer_on_disk(std::span<const PlacedTensor> tensors) {
  std::map<std::string, Bytes> layers;
  for (const auto& one : tensors) {
    if (one.place.is_disk()) layers[module_around(one.name)] += one.bytes() + alignment_in_pages;
  }
  Bytes largest = 0;
  for (const auto& [name, bytes] : layers) largest = std::max(largest, bytes);
  return largest;
}

void require_own_memory(const PlacedTensor& one) {
  if (one.tensor.storage().nbytes() == one.tensor.nbytes() && one.tensor.storage_offset() == 0) return;
  throw UsageError({.what = text::concat("The tensor ", text::quote(one.name), " is a part of another one's memory"),
                    .why = "what is on disk is read automatically",
                    .hint = "keep it in memory by the device map, or make it a tensor of its own"});
}

}  // namespace hortator::accelerator
