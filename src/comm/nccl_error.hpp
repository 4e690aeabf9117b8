#pragma once

#include <nccl.h>

#include <hortator/error.hpp>
#include <string_view>

namespace hortator::comm {

/// What NCCL itself says of a failed `operation`, and where to look.
Problem nccl_problem(ncclResult_t code, std::string_view operation);

/// For calls that belong to no communicator. Throws unless `code` is success.
void check_nccl(ncclResult_t code, std::string_view operation);

}  // namespace hortator::comm
