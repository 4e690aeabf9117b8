#pragma once

#include <ATen/record_function.h>

#include <string_view>

#include "base/activity.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace hortator::comm {

/// A range in profiles from its construction to its end: "hortator::all_reduce (node, 4.0 MiB)". LibTorch's callbacks
/// see it: Kineto's traces (Accelerator::profile), and NVTX where somebody has LibTorch emit it. While nobody records,
/// it costs a look at this thread's callbacks, and no text is made.
class CollectiveRange {
 public:
  CollectiveRange(const activity::Operation& operation, std::string_view backend, std::string_view part = "")
      : range_(at::RecordScope::USER_SCOPE) {
    if (!range_.isActive() || !operation) return;
    const auto words = text::concat("hortator::", operation.name.text(), part, " (", backend, ", ",
                                    units::bytes(operation.bytes), ")");
    range_.before(std::string_view(words));
  }

 private:
  at::RecordFunction range_;
};

}  // namespace hortator::comm
