#include "comm/backends/registry.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/nccl/backend.hpp"
#include "comm/self/self_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

std::unique_ptr<Communicator> make_self(const mpi::Communicator&, c10::Device device, std::chrono::milliseconds) {
  return std::make_unique<SelfCommunicator>(device);
}

template <typename Made>
std::unique_ptr<Communicator> make_over_duplicate(const mpi::Communicator& world, c10::Device,
                                                  std::chrono::milliseconds) {
  return std::make_unique<Made>(world.duplicate());
}

void require_one_rank(const BackendRequest& request) {
  if (request.ranks == 1) return;
  throw UsageError({.what = text::concat("HORTATOR_COMMUNICATOR=self, but the run has ", request.ranks, " ranks"),
                    .why = "it is the communicator of one rank, and sends nothing",
                    .hint = "start one rank, or unset it"});
}

void require_nccl(const BackendRequest& request) {
  if (request.accelerator != nccl_traits.device) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl, but this Hortator was built without NCCL",
                      .why = "NCCL comes with CUDA",
                      .hint = "configure with -DHORTATOR_WITH_CUDA=ON and a CUDA LibTorch, or unset it"});
  }
  if (request.shares_devices) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl together with HORTATOR_SHARE_DEVICES=1",
                      .why = "NCCL needs a GPU for each rank",
                      .hint = "unset one of the two"});
  }
  if (request.tensors == c10::kCPU && !request.sees_devices) {
    throw UsageError({.what = "HORTATOR_COMMUNICATOR=nccl, but the ranks work on the CPU",
                      .why = "NCCL carries CUDA tensors only",
                      .hint = "run on nodes with GPUs and without HORTATOR_DEVICE=cpu, or unset it"});
  }
}

constexpr std::array<Backend, 4> backend_table = {{
    {.name = "self",
     .traits = SelfCommunicator::back_end_traits,
     .suits = [](const BackendRequest& request) { return request.ranks == 1; },
     .require = require_one_rank,
     .make = make_self},
    {.name = "mpi",
     .traits = MpiCommunicator::back_end_traits,
     .suits = [](const BackendRequest& request) { return request.ranks > 1; },
     .require = nullptr,
     .make = make_over_duplicate<MpiCommunicator>},
    {.name = "node",
     .traits = NodeCommunicator::back_end_traits,
     .suits = [](const BackendRequest& request) { return request.ranks > 1 && request.largest_node > 1; },
     .require = nullptr,
     .make = make_over_duplicate<NodeCommunicator>},
    {.name = "nccl",
     .traits = nccl_traits,
     .suits = [](const BackendRequest& request) { return request.ranks > 1; },
     .require = require_nccl,
     .make = make_nccl_communicator},
}};

}  // namespace

std::span<const Backend> backends() { return backend_table; }

const Backend* find_backend(std::string_view name) {
  const auto found = std::ranges::find(backend_table, name, &Backend::name);
  return found == backend_table.end() ? nullptr : &*found;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& backend : backend_table) names.emplace_back(backend.name);
  return names;
}

}  // namespace hortator::comm
