#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "paging/interception/paged_key.hpp"

/// Models whose parts lie on several devices: what their modules compute with meets on one.
namespace hortator::bigmodel {

/// An argument of an operator, as far as that matters.
struct MeetingGuest {
  c10::Device device = c10::kCPU;
  bool is_at_home = false;  ///< it lies there for good: a parameter
};

/// Where the operator's arguments are to meet; nothing: they are together. On the device of a parameter if one has some
/// (the first counts); else on that of the highest number. The host is left for any device. Pure.
std::optional<c10::Device> meeting_place(std::span<const MeetingGuest> guests);

/// The memories of parameters that lie on devices for good.
class DeviceHomes {
 public:
  explicit DeviceHomes(const std::vector<at::Tensor>& tensors);
  bool has(const at::Tensor& tensor) const;

 private:
  std::vector<at::Storage> storages_;  ///< held, so that their addresses mean nothing else
  std::unordered_set<const c10::StorageImpl*> addresses_;
};

/// As long as it lives, each operator of this thread whose tensors lie on several devices gets copies of them on one.
/// What an operator changes in place is brought back. Numbers (tensors without dimensions) on the host, and operators
/// that copy from one device to another, are left alone.
class DeviceMeeting {
 public:
  /// `homes` is borrowed.
  explicit DeviceMeeting(const DeviceHomes& homes);
  ~DeviceMeeting();
  DeviceMeeting(const DeviceMeeting&) = delete;
  DeviceMeeting& operator=(const DeviceMeeting&) = delete;

 private:
  const DeviceHomes* former_;
  c10::impl::IncludeDispatchKeyGuard on_;
};

}  // namespace hortator::bigmodel
