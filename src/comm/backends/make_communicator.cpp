#include "comm/backends/make_communicator.hpp"

#include "comm/backends/backend_choice.hpp"
#include "comm/decorators/call_comparison.hpp"
#include "comm/decorators/checked_communicator.hpp"
#include "comm/decorators/staged_communicator.hpp"
#include "comm/decorators/watched_communicator.hpp"
#include "comm/rehearsed/rehearsed_communicator.hpp"
#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/cpu/device_choice.hpp"
#include "machine/device/device.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/rehearsed_world.hpp"
#include "runtime/debug_mode.hpp"

namespace hortator::comm {
namespace {

bool shares_devices() { return machine::asked_sharing(core::process_variables()) == machine::Sharing::allowed; }

// @collective
BackendChoice choose(const mpi::Communicator& world, c10::Device device) {
  const int largest_node = mpi::all_reduce(world, world.node().size(), mpi::Op::max);
  BackendChoice choice;
  mpi::all_or_none(world, [&] {
    choice = choose_backend(
        {.requested = core::process_variables()("HORTATOR_COMMUNICATOR"),
         .tensors = device.type(),
         .accelerator = machine::accelerator_kind() != nullptr ? machine::accelerator_kind()->type : c10::kCPU,
         .sees_devices = !machine::visible_devices().empty(),
         .shares_devices = shares_devices(),
         .ranks = world.size(),
         .largest_node = largest_node});
  });
  mpi::same_on_all(world, text::concat(choice.backend->name, choice.is_staged ? ", staged" : ""),
                   "the communicator (HORTATOR_COMMUNICATOR)");
  return choice;
}

// @collective
std::unique_ptr<Communicator> make_unchecked(const mpi::Communicator& world, c10::Device device,
                                             std::chrono::milliseconds patience) {
  const auto [backend, is_staged] = choose(world, device);
  if (mpi::is_rehearsed(world))
    return std::make_unique<RehearsedCommunicator>(world.duplicate(), backend->traits, device);
  if (!is_staged) return backend->make(world, device, patience);
  if (world.rank() == 0) {
    log::warn(c10::DeviceTypeName(device.type()), " tensors travel through the host's memory because ",
              shares_devices() ? "of HORTATOR_SHARE_DEVICES=1" : "no communicator carries them", ", which is slow");
  }
  return std::make_unique<StagedCommunicator>(backend->make(world, at::kCPU, patience), device);
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks,
                                                std::chrono::milliseconds patience) {
  // mpirun passes a variable to other hosts only when asked to (-x HORTATOR_DEBUG), so ranks may differ.
  mpi::same_on_all(world, checks == Checks::on ? "on" : "off", "the debug mode (HORTATOR_DEBUG)");
  auto made = make_unchecked(world, device, patience);
  if (checks == Checks::on) {
    const auto comparison = std::make_shared<CallComparison>(world.duplicate());
    made = std::make_unique<CheckedCommunicator>(std::move(made), comparison);
    // Compare collectives on host values in the same order. Not with those of device tensors: another thread may call
    // these.
    if (device.is_cpu()) world.check_calls(comparison);
  }
  // One rank never waits for another, so that the watchdog has nothing to see.
  if (world.size() == 1) return made;
  return std::make_unique<WatchedCommunicator>(std::move(made), world.membership().derive(0, world.size()));
}

Checks checks_from_environment() {
  return runtime::asked_for_debug_mode(core::process_variables()) ? Checks::on : Checks::off;
}

}  // namespace hortator::comm
