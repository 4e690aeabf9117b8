#include "bigmodel/device_meeting.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "paging/interception/operator_use.hpp"

namespace hortator::bigmodel {
namespace {

thread_local const DeviceHomes* homes_of_thread = nullptr;

// What they are for is to bring values from one device to another.
constexpr std::array<std::string_view, 6> travellers = {"aten::copy_",    "aten::to",   "aten::_to_copy",
                                                        "aten::set_data", "aten::set_", "aten::type_as"};

bool travels(const std::string& name) { return std::ranges::find(travellers, name) != travellers.end(); }

bool is_number(const at::Tensor& tensor) { return tensor.dim() == 0 && tensor.device().is_cpu(); }

bool is_list_of_tensors(const c10::IValue& value) { return value.isTensorList() || value.isOptionalTensorList(); }

template <typename See>
void each_argument(const c10::IValue& value, const See& see) {
  if (value.isTensor()) {
    if (value.toTensor().defined() && !is_number(value.toTensor())) see(value.toTensor());
  } else if (is_list_of_tensors(value)) {
    for (const c10::IValue& part : value.toListRef()) each_argument(part, see);
  }
}

std::optional<c10::Device> meeting_place_of(c10::ArrayRef<c10::IValue> arguments) {
  std::vector<MeetingGuest> guests;
  for (const auto& argument : arguments) {
    each_argument(argument, [&](const at::Tensor& tensor) {
      guests.push_back({.device = tensor.device(), .is_at_home = homes_of_thread->has(tensor)});
    });
  }
  return meeting_place(guests);
}

/// The arguments of one call on their way.
class Journey {
 public:
  explicit Journey(c10::Device to) : to_(to) {}

  c10::IValue bring(const c10::IValue& value, bool is_written) {
    if (value.isTensor()) return bring_tensor(value.toTensor(), is_written);
    if (!is_list_of_tensors(value)) return value;
    auto list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, bring(list.get(i), is_written));
    return list;
  }

  /// What was changed is where it was; of what comes back, too.
  c10::IValue bring_back(const c10::IValue& value) const {
    if (!value.isTensor()) return value;
    for (const auto& [there, here] : written_) {
      if (value.toTensor().is_same(here)) return there;
    }
    return value;
  }
  void write_back() const {
    for (const auto& [there, here] : written_) there.copy_(here);
  }

 private:
  at::Tensor bring_tensor(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined() || is_number(tensor) || tensor.device() == to_) return tensor;
    auto here = tensor.to(to_);
    if (is_written) written_.emplace_back(tensor, here);
    return here;
  }

  c10::Device to_;
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

void run_together(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  constexpr c10::DispatchKeySet after_us(c10::DispatchKeySet::FULL_AFTER, paging::meeting_key);
  const auto& use = paging::use_of(op);
  const auto arguments = torch::jit::last(*stack, use.arguments);
  const bool stays = homes_of_thread == nullptr || use.leaves_bytes_alone || travels(op.schema().name());
  const auto place = stays ? std::nullopt : meeting_place_of(arguments);
  if (!place) return op.redispatchBoxed(keys & after_us, stack);

  Journey journey(*place);
  const auto first = stack->size() - use.arguments;
  {
    const c10::impl::ExcludeDispatchKeyGuard plainly(paging::meeting_key);
    for (std::size_t i = 0; i < use.arguments; ++i)
      (*stack)[first + i] = journey.bring((*stack)[first + i], use.writes(i));
    op.callBoxed(stack);  // its keys are others there
    journey.write_back();
  }
  for (auto i = first; i < stack->size(); ++i) (*stack)[i] = journey.bring_back((*stack)[i]);
}

torch::Library install_meeting() {
  torch::Library library(torch::Library::IMPL, "_", std::make_optional(paging::meeting_key), __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_together>());
  return library;
}

const DeviceHomes* begin_meeting(const DeviceHomes& homes) {
  [[maybe_unused]] static const auto* library = new torch::Library(install_meeting());
  return std::exchange(homes_of_thread, &homes);
}

}  // namespace

std::optional<c10::Device> meeting_place(std::span<const MeetingGuest> guests) {
  const auto is_elsewhere = [&](const MeetingGuest& guest) { return guest.device != guests.front().device; };
  if (std::ranges::none_of(guests, is_elsewhere)) return {};
  std::optional<c10::Device> place;
  for (const auto& [device, is_at_home] : guests) {
    if (device.is_cpu()) continue;
    if (is_at_home) return device;
    if (!place || device.index() > place->index()) place = device;
  }
  return place;
}

DeviceHomes::DeviceHomes(const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors) {
    storages_.push_back(tensor.storage());
    addresses_.insert(tensor.storage().unsafeGetStorageImpl());
  }
}

bool DeviceHomes::has(const at::Tensor& tensor) const {
  return tensor.has_storage() &&
         addresses_.contains(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

DeviceMeeting::DeviceMeeting(const DeviceHomes& homes) : former_(begin_meeting(homes)), on_(paging::meeting_key) {}
DeviceMeeting::~DeviceMeeting() { homes_of_thread = former_; }

}  // namespace hortator::bigmodel
