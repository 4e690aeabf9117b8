#pragma once

#include <nccl.h>

#include <hortator/error.hpp>
#include <string_view>
#include <variant>

#include "comm/abandoned.hpp"

namespace hortator::comm {

/// What communicators were aborted for: an error here, or a rank that has left.
using NcclFailure = std::variant<Error, Abandoned>;
[[noreturn]] void raise(const NcclFailure& failure);

/// What NCCL itself says of a failed `operation`, and where to look.
Problem nccl_problem(ncclResult_t code, std::string_view operation);

/// For calls that belong to no communicator. Throws unless `code` is success.
void check_nccl(ncclResult_t code, std::string_view operation);

}  // namespace hortator::comm
