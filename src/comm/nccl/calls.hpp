#pragma once

#include <c10/core/Device.h>
#include "comm/nccl/library.hpp"

#include <chrono>
#include <functional>
#include <hortator/error.hpp>
#include <span>
#include <string_view>

/// Calls of NCCL that may take long, with a time limit. The caller ensures that no other thread calls NCCL meanwhile.
namespace hortator::comm {

/// The state of a communicator: success, in progress, or its error.
ncclResult_t nccl_state(ncclComm_t comm);

/// The pause before the next question after `waited`: none at first, since NCCL takes over most operations within the
/// time that a thread needs to wake up.
std::chrono::microseconds nccl_pause(std::chrono::steady_clock::duration waited);

/// Waits while `comm` is in progress and returns its state. That is "in progress" only after `patience` or once
/// `is_pointless()` is true.
ncclResult_t settle(ncclComm_t comm, std::chrono::milliseconds patience, const std::function<bool()>& is_pointless);

/// The error for an `operation` that is still in progress after `patience`.
Problem nccl_timeout(std::string_view operation, std::chrono::milliseconds patience);

/// Aborts all of `comms`, which are on `device`, in one group: one by one, the abort of the first would wait for
/// kernels of the second. False if NCCL has not returned after `patience`; the abort then continues in a thread of its
/// own.
bool abort_within(c10::Device device, std::span<const ncclComm_t> comms, std::chrono::milliseconds patience);

}  // namespace hortator::comm
