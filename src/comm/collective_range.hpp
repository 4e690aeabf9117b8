#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <optional>
#include <string_view>
#include <utility>

#include "core/activity/activity.hpp"

namespace hortator::comm {

/// A range in profiles while it exists: "hortator::all_reduce (node, 4.0 MiB)". LibTorch's callbacks see it: Kineto's
/// traces (Accelerator::profile), and NVTX where LibTorch emits it. A range within it, "record_param_comms" as
/// PyTorch's own collectives have it, holds name, bytes, group and sequence number for programs that read traces.
/// Without a recording, it only checks this thread's callbacks and builds no text.
class CollectiveRange {
 public:
  enum class CollectivePhase { start, wait };

  CollectiveRange(const activity::Operation& operation, std::string_view backend,
                  CollectivePhase part = CollectivePhase::start) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (callbacks && operation) begin(*std::move(callbacks), operation, backend, part);
  }

 private:
  void begin(at::StepCallbacks&& callbacks, const activity::Operation& operation, std::string_view backend,
             CollectivePhase part);

  // In this order: the inner range ends before the outer one.
  std::optional<at::RecordFunction> range_;
  std::optional<c10::DebugInfoGuard> facts_;
  std::optional<at::RecordFunction> inner_;
};

}  // namespace hortator::comm
