#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/error.hpp>
#include <utility>

#include "accelerator/dispatch/dispatch_state.hpp"
#include "accelerator/dispatch/offloaded_parts.hpp"
#include "accelerator/dispatch/packed_parts.hpp"
#include "accelerator/dispatch/placing.hpp"
#include "accelerator/weights/loading.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator {
namespace accelerator {
namespace {

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
  accelerator::require_offload_folder(tensors, options.offload_folder);
  const auto parts = accelerator::take_offloaded(tensors, options.offload_folder);
  accelerator::move_to_places(tensors);
  auto all = tensors;
  all.insert(all.end(), parts.tensors.begin(), parts.tensors.end());
  auto state = std::make_unique<Dispatch::State>(map, all);
  if (!parts.tensors.empty()) {
    state->page(parts.tensors, parts.fillings, parts.source,
                {.map = map, .page_bytes = accelerator::page_bytes_for(parts.tensors, {})}, options.offload_folder);
  }
  if (std::ranges::any_of(tensors, [](const auto& one) { return one.place.is_disk(); }))
    state->offload(module, tensors, parts.tensors, options);
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
  auto source = loading.shared_source();
  std::shared_ptr<packed::PackingSource> packing;
  if (options.quantise) source = packing = accelerator::packing_source(loading, module, *options.quantise);
  auto tensors = accelerator::tensors_to_place(
      module, [&](const std::string& name, const at::Tensor& tensor) { return loading.type_for(name, tensor); });
  const bool is_dealt = std::holds_alternative<std::string>(options.device_map);
  const auto memory = options.max_memory.empty() && is_dealt ? get_max_memory(state) : options.max_memory;
  auto plan = accelerator::plan_dispatch(module, tensors, memory, options);
  accelerator::require_devices(plan.map);
  accelerator::require_packed_on_host(tensors);

  const at::NoGradGuard no_grad;
  const auto division = accelerator::divide(tensors, loading.fillings());
  if (packing) accelerator::keep_packed_on_disk(*packing, division, options.offload_folder);
  accelerator::prepare_all(tensors, division);
  weights::fill(*source, division.now);
  loading.require_tied();
  auto dispatched = std::make_unique<Dispatch::State>(plan.map, tensors);
  if (!division.on_disk.empty())
    dispatched->page(division.on_disk, division.later, source, plan, options.offload_folder);
  return Dispatch(std::move(dispatched));
}

}  // namespace detail
}  // namespace hortator
