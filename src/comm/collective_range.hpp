#pragma once

#include <ATen/record_function.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/activity/activity.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::comm {

/// A range in profiles while it exists: "hortator::all_reduce (node, 4.0 MiB)". LibTorch's callbacks see it: Kineto's
/// traces (Accelerator::profile), and NVTX where LibTorch emits it. Without a recording, it only checks this thread's
/// callbacks and builds no text.
class CollectiveRange {
 public:
  CollectiveRange(const activity::Operation& operation, std::string_view backend, std::string_view part = "") {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (!callbacks || !operation) return;
    const auto label = text::concat("hortator::", operation.name.text(), part, " (", backend, ", ",
                                    units::bytes(operation.bytes), ")");
    range_.emplace(*std::move(callbacks)).before(std::string_view(label));
  }

 private:
  std::optional<at::RecordFunction> range_;
};

}  // namespace hortator::comm
