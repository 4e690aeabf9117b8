#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/error.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "accelerator/dispatch/dispatch_state.hpp"
#include "accelerator/weights/loading.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/device/cuda.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator {
namespace accelerator {
namespace {

constexpr const char* on_its_way = "the tensor has no values: the loading that was to fill it has failed";

void require_devices(const DeviceMap& map) {
  const auto devices = machine::visible_device_count();
  for (const auto& [name, place] : map) {
    if (!place.is_cuda() || place.index() < devices) continue;
    throw UsageError(
        {.what = text::concat(name.empty() ? std::string("the model") : text::quote(name), " is to lie on ", place),
         .why = text::concat("this process sees ", text::count(devices, "CUDA device")),
         .hint = "use one of the places that get_max_memory() returns"});
  }
}

c10::Device device_of(const DevicePlacement& place) {
  return place.is_cuda() ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(place.index())) : c10::kCPU;
}

/// Gives a tensor and all tied ones the memory of another tensor.
void replace(const PlacedTensor& one, const at::Tensor& by) {
  one.tensor.set_data(by);
  for (const auto& other : one.others) other.set_data(by);
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

/// Tensors that the checkpoint does not have keep their values.
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

/// The fillings that are read now, and those that are read on use.
struct Division {
  std::vector<weights::Filling> now = {};
  std::vector<weights::Filling> later = {};
  std::vector<PlacedTensor> on_disk = {};
};

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

/// Moves parts in memory to their places.
void move_to_places(std::vector<PlacedTensor>& tensors) {
  const auto empty = std::ranges::find_if(tensors, [](const auto& one) { return paging::lacks_memory(one.tensor); });
  if (empty != tensors.end() && !paging::is_deferred(empty->tensor)) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(empty->name), " has no values"),
                      .why = "dispatch_model() takes a model that is in memory",
                      .hint = "load_checkpoint_and_dispatch() takes one without values, and a checkpoint"});
  }
  for (auto& one : tensors) {
    if (one.place.is_disk() && one.tensor.numel() == 0) one.place = DevicePlacement::cpu();
    if (!one.place.is_disk()) keep_values(one);
  }
}

}  // namespace
}  // namespace accelerator

namespace detail {

Dispatch::Dispatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dispatch::~Dispatch() = default;
Dispatch::Dispatch(Dispatch&& other) noexcept = default;
Dispatch& Dispatch::operator=(Dispatch&& other) noexcept = default;
const DeviceMap& Dispatch::device_map() const { return state_->map(); }
DispatchCounters Dispatch::counters() const { return state_->counters(); }
void Dispatch::remove() { state_->remove(); }
std::shared_ptr<void> Dispatch::begin_use() const { return state_->begin_use(); }

Dispatch dispatch(torch::nn::Module& module, const DeviceMap& map, const DispatchOptions& options) {
  check_device_map(module, map);
  accelerator::require_devices(map);
  auto tensors = accelerator::tensors_to_place(
      module, [](const std::string&, const at::Tensor& tensor) { return tensor.scalar_type(); });
  accelerator::place(tensors, module, map, options.offload_buffers);
  const auto on_disk = std::ranges::find_if(tensors, [](const auto& one) { return one.place.is_disk(); });
  if (on_disk != tensors.end() && options.offload_folder.empty()) {
    throw UsageError({.what = text::concat(text::quote(on_disk->name), " is to lie on disk, and nothing says where"),
                      .hint = "name a folder with room for it: {.offload_folder = ...}"});
  }
  accelerator::move_to_places(tensors);
  auto state = std::make_unique<Dispatch::State>(map, tensors);
  if (on_disk != tensors.end()) state->offload(module, tensors, options);
  return Dispatch(std::move(state));
}

Dispatch load_and_dispatch(const hortator::State& state, torch::nn::Module& module,
                           const std::filesystem::path& checkpoint, const LoadAndDispatchOptions& options) {
  const accelerator::Loading loading(module, checkpoint,
                                     {.rename = options.rename,
                                      .strict = options.strict,
                                      .dtype = options.dtype,
                                      .keep_in_fp32_modules = options.keep_in_fp32_modules,
                                      .model = options.model});
  if (!loading.omissions().empty()) log::warn(loading.omissions());
  auto tensors = accelerator::tensors_to_place(
      module, [&](const std::string& name, const at::Tensor& tensor) { return loading.type_for(name, tensor); });
  const bool is_dealt = std::holds_alternative<std::string>(options.device_map);
  const auto memory = options.max_memory.empty() && is_dealt ? get_max_memory(state) : options.max_memory;
  auto plan = accelerator::plan_dispatch(module, tensors, memory, options);
  accelerator::require_devices(plan.map);

  const at::NoGradGuard no_grad;
  const auto division = accelerator::divide(tensors, loading.fillings());
  accelerator::prepare_all(tensors, division);
  weights::fill(loading.source(), division.now);
  loading.require_tied();
  auto dispatched = std::make_unique<Dispatch::State>(plan.map, tensors);
  if (!division.on_disk.empty())
    dispatched->page(division.on_disk, division.later, loading.shared_source(), plan, options.offload_folder);
  return Dispatch(std::move(dispatched));
}

}  // namespace detail
}  // namespace hortator
