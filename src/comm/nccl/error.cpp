#include "comm/nccl/error.hpp"

#include "core/text/text.hpp"

namespace hortator::comm {

void raise(const NcclFailure& failure) {
  if (const auto* left = std::get_if<Abandoned>(&failure)) throw Abandoned(*left);
  throw Error(std::get<Error>(failure));
}

Problem nccl_problem(ncclResult_t code, std::string_view operation) {
  const std::string_view last = ncclGetLastError(nullptr);
  const auto detail = last.empty() ? std::string() : text::concat(": ", last);
  return {.what = text::concat("NCCL failed in ", operation, ": ", ncclGetErrorString(code), detail),
          .why = "ranks cannot exchange tensors any more, so all NCCL communicators of this process were aborted",
          .hint = "the first rank that reported is the one to look at; NCCL_DEBUG=WARN makes NCCL say more"};
}

void check_nccl(ncclResult_t code, std::string_view operation) {
  if (code == ncclSuccess) return;
  throw Error({.what = text::concat("NCCL failed in ", operation, ": ", ncclGetErrorString(code)),
               .why = ncclGetLastError(nullptr),
               .hint = "NCCL_DEBUG=WARN makes NCCL say more"});
}

}  // namespace hortator::comm
