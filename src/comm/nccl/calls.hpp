#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <hortator/error.hpp>
#include <span>
#include <string_view>

/// Calls of NCCL that take their time, with an end to it. The caller sees to it that nobody else calls meanwhile.
namespace hortator::comm {

/// What NCCL says of a communicator: success, in progress, or its error.
ncclResult_t nccl_state(ncclComm_t comm);

/// Waits while `comm` is in progress. What it has come to then: in progress only if it was longer than `patience`, or
/// if it `is_in_vain`.
ncclResult_t settle(ncclComm_t comm, std::chrono::milliseconds patience, const std::function<bool()>& is_in_vain);

/// Why `operation` is still in progress after `patience`.
Problem nccl_timeout(std::string_view operation, std::chrono::milliseconds patience);

/// Aborts these communicators, all at once: one by one, the abort of the first would wait for kernels of the second.
/// False if NCCL has not come back by then; it is left to itself.
bool abort_within(std::span<const ncclComm_t> comms, std::chrono::milliseconds patience);

}  // namespace hortator::comm
