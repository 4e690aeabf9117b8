#include "comm/make_communicator.hpp"

#include <stdexcept>
#include <string>

#include "comm/backend.hpp"
#include "comm/decorators/call_comparison.hpp"
#include "comm/decorators/checked_communicator.hpp"
#include "comm/decorators/staged_communicator.hpp"
#include "comm/decorators/watched_communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/nccl/backend.hpp"
#include "comm/self/self_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "machine/cpu/device_choice.hpp"
#include "machine/device/cuda.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/debug_mode.hpp"

namespace hortator::comm {
namespace {

Backend choose(const mpi::Communicator& world, c10::Device device) {
  const int largest_node = mpi::all_reduce(world, world.node().size(), MPI_MAX);
  Backend backend{};
  mpi::all_or_none(world, [&] {
    backend = choose_backend(
        {.asked = core::process_variables()("HORTATOR_COMMUNICATOR"),
         .on_cuda = device.is_cuda(),
         .has_cuda_tensors = machine::visible_device_count() > 0,
         .has_nccl = machine::is_built(),
         .shares_devices = machine::asked_sharing(core::process_variables()) == machine::Sharing::allowed,
         .ranks = world.size(),
         .largest_node = largest_node});
  });
  mpi::same_on_all(world, std::to_string(static_cast<int>(backend)), "the communicator (HORTATOR_COMMUNICATOR)");
  return backend;
}

std::unique_ptr<Communicator> make_unchecked(const mpi::Communicator& world, c10::Device device,
                                             std::chrono::milliseconds patience) {
  switch (choose(world, device)) {
    case Backend::self:
      return std::make_unique<SelfCommunicator>(device);
    case Backend::mpi:
      return std::make_unique<MpiCommunicator>(mpi::Communicator::duplicate(world.get()));
    case Backend::node:
      return std::make_unique<NodeCommunicator>(mpi::Communicator::duplicate(world.get()));
    case Backend::nccl:
      return make_nccl_communicator(world, device, patience);
    case Backend::staged:
      if (world.rank() == 0)
        log::warn("tensors of CUDA devices travel through the host's memory, for HORTATOR_SHARE_DEVICES=1: slowly");
      return std::make_unique<StagedCommunicator>(make_unchecked(world, at::kCPU, patience), device);
  }
  throw std::logic_error("a back end without a case");
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks,
                                                std::chrono::milliseconds patience) {
  // mpirun hands variables to other hosts only when told to (-x HORTATOR_DEBUG).
  mpi::same_on_all(world, checks == Checks::on ? "on" : "off", "the debug mode (HORTATOR_DEBUG)");
  auto made = make_unchecked(world, device, patience);
  if (checks == Checks::on) {
    const auto comparison = std::make_shared<CallComparison>(mpi::Communicator::duplicate(world.get()));
    made = std::make_unique<CheckedCommunicator>(std::move(made), comparison);
    // On host values as well. A device's tensors are another matter: another thread may see to them.
    if (device.is_cpu()) world.check_calls(comparison);
  }
  // One rank waits for nobody.
  if (world.size() == 1) return made;
  return std::make_unique<WatchedCommunicator>(std::move(made), world.membership().derive(0, world.size()));
}

Checks checks_from_environment() {
  return runtime::asked_for_debug_mode(core::process_variables()) ? Checks::on : Checks::off;
}

}  // namespace hortator::comm
