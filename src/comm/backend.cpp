#include "comm/backend.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

const std::array<std::string, 4> known = {"auto", "mpi", "node", "nccl"};

std::string checked(const std::string& asked) {
  if (std::find(known.begin(), known.end(), asked) != known.end()) return asked;
  throw UsageError({.what = text::concat("HORTATOR_COMMUNICATOR=", asked, " is no communicator"),
                    .why = "it decides how tensors travel between ranks",
                    .hint = text::suggestion(asked, known)});
}

}  // namespace

Backend choose_backend(const BackendRequest& request) {
  const auto asked = checked(request.asked.value_or("auto"));
  if (asked == "nccl" && !request.has_nccl) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl, but this Hortator was built without NCCL",
                      .why = "NCCL comes with CUDA",
                      .hint = "configure with -DHORTATOR_WITH_CUDA=ON and a CUDA LibTorch, or leave the variable out"});
  }
  if (asked == "nccl" && request.shares_devices) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl with HORTATOR_SHARE_DEVICES=1",
                      .why = "NCCL needs a GPU for each rank",
                      .hint = "leave one of the two out"});
  }
  if (asked == "nccl" && !request.on_cuda && !request.has_cuda_tensors) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl, but the ranks work on the CPU",
                      .why = "NCCL carries CUDA tensors only",
                      .hint = "run on nodes with GPUs and without HORTATOR_DEVICE=cpu, or leave the variable out"});
  }
  if (request.ranks == 1) return Backend::self;
  if (request.on_cuda) return request.shares_devices ? Backend::staged : Backend::nccl;
  if (asked == "mpi" || asked == "node") return asked == "node" ? Backend::node : Backend::mpi;
  return request.largest_node > 1 ? Backend::node : Backend::mpi;
}

}  // namespace hortator::comm
