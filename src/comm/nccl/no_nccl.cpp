#include <hortator/error.hpp>

#include "comm/nccl/backend.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {

std::unique_ptr<Communicator> make_nccl_communicator(const mpi::Communicator& world, c10::Device device,
                                                     std::chrono::milliseconds) {
  throw UsageError({.what = text::concat("Asked for nccl in a build without it, for tensors on ", device, " of ",
                                         text::count(world.size(), "rank")),
                    .why = "MPI never touches device memory, so only NCCL carries it between ranks",
                    .hint = "build with HORTATOR_WITH_CUDA=ON, or set HORTATOR_DEVICE=cpu"});
}

}  // namespace hortator::comm
