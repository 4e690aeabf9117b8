#include "accelerator/dispatch/placing.hpp"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <unordered_map>
#include <unordered_set>

#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "machine/device/device.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator::accelerator {
namespace {

constexpr const char* on_its_way = "the tensor has no values: the loading that was to fill it has failed";

c10::Device device_of(const DevicePlacement& place) {
  if (!place.is_cuda()) return c10::kCPU;
  return {machine::accelerator_kind()->type, static_cast<c10::DeviceIndex>(place.index())};
}

/// Gives a tensor and all tied ones the memory of another tensor.
void replace(const PlacedTensor& one, const at::Tensor& by) {
  one.tensor.set_data(by);
  for (const auto& other : one.others) other.set_data(by);
  interception::refresh_weights();
}

/// Allocates a tensor of its final type on its final device; none on disk.
void prepare_to_fill(const PlacedTensor& one) {
  const auto device = device_of(one.place);
  const bool is_right = one.tensor.scalar_type() == one.type && one.tensor.device() == device;
  if (one.place.is_disk()) {
    paging::drop_values(one.tensor, on_its_way);
    if (is_right) return;
    const auto absent = at::empty_strided(one.tensor.sizes(), one.tensor.strides(), one.type);
    paging::drop_values(absent, on_its_way);
    replace(one, absent);
  } else if (is_right) {
    paging::give_memory(one.tensor);
  } else {
    paging::drop_values(one.tensor, on_its_way);
    replace(one,
            at::empty_strided(one.tensor.sizes(), one.tensor.strides(), at::TensorOptions(device).dtype(one.type)));
  }
}

}  // namespace

void require_devices(const DeviceMap& map) {
  const auto devices = static_cast<int>(machine::visible_devices().size());
  for (const auto& [name, place] : map) {
    if (!place.is_cuda() || place.index() < devices) continue;
    throw UsageError(
        {.what = text::concat(name.empty() ? std::string("The model") : text::quote(name), " is mapped to ", place),
         .why = text::concat("this process sees ", text::count(devices, "CUDA device")),
         .hint = "use one of the places that get_max_memory() returns"});
  }
}

void require_offload_folder(const std::vector<PlacedTensor>& tensors, const std::filesystem::path& folder) {
  const auto on_disk = std::ranges::find_if(tensors, [](const auto& one) { return one.place.is_disk(); });
  if (on_disk == tensors.end() || !folder.empty()) return;
  throw UsageError(
      {.what = text::concat(text::quote(on_disk->name), " is mapped to disk, but no offload folder is given"),
       .hint = "name a folder with room for it: {.offload_folder = ...}"});
}

void keep_values(PlacedTensor& one) {
  if (one.place.is_disk()) one.place = DevicePlacement::cpu();
  paging::settle(one.tensor);
  if (paging::lacks_memory(one.tensor)) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(one.name), " has no values"),
                      .why = "the checkpoint does not have it, and the model was made by init_empty_weights",
                      .hint = "make the model with values, or take a checkpoint that is complete"});
  }
  const auto device = device_of(one.place);
  if (one.tensor.scalar_type() != one.type || one.tensor.device() != device)
    replace(one, one.tensor.detach().to(device, one.type));
}

Division divide(std::vector<PlacedTensor>& tensors, const std::vector<weights::Filling>& fillings) {
  std::unordered_map<const at::TensorImpl*, std::size_t> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    numbers.emplace(tensors[i].tensor.unsafeGetTensorImpl(), i);
    for (const auto& other : tensors[i].others) numbers.emplace(other.unsafeGetTensorImpl(), i);
  }
  Division division;
  std::vector<bool> is_filled(tensors.size());
  for (const auto& filling : fillings) {
    const auto number = numbers.at(filling.tensor.unsafeGetTensorImpl());
    auto& one = tensors[number];
    is_filled[number] = true;
    if (one.place.is_disk() && one.tensor.numel() == 0) one.place = DevicePlacement::cpu();
    (one.place.is_disk() ? division.later : division.now).push_back(filling);
    if (one.place.is_disk()) division.on_disk.push_back(one);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_filled[i]) keep_values(tensors[i]);
  }
  return division;
}

/// Starts with the parts on disk, whose memory is then free for the others.
void prepare_all(const std::vector<PlacedTensor>& tensors, const Division& division) {
  std::unordered_set<const at::TensorImpl*> filled_now;
  for (const auto& filling : division.now) filled_now.insert(filling.tensor.unsafeGetTensorImpl());
  for (const auto& one : division.on_disk) prepare_to_fill(one);
  for (const auto& one : tensors) {
    const bool is_filled = filled_now.contains(one.tensor.unsafeGetTensorImpl()) ||
                           std::ranges::any_of(one.others, [&](const auto& other) {
                             return filled_now.contains(other.unsafeGetTensorImpl());
                           });
    if (is_filled) prepare_to_fill(one);
  }
}

}  // namespace hortator::accelerator
