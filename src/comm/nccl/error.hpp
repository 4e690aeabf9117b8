#pragma once

#include "comm/nccl/library.hpp"

#include <hortator/error.hpp>
#include <string_view>
#include <variant>

#include "comm/abandoned.hpp"

namespace hortator::comm {

/// Why communicators were aborted: an error of this rank, or another rank that has left.
using NcclFailure = std::variant<Error, Abandoned>;
[[noreturn]] void raise(const NcclFailure& failure);

/// The error for an `operation` that failed in NCCL, with NCCL's own message and advice.
Problem nccl_problem(ncclResult_t code, std::string_view operation);

/// Throws unless `code` is success. For calls that belong to no communicator.
void check_nccl(ncclResult_t code, std::string_view operation);

}  // namespace hortator::comm
