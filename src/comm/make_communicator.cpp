#include "comm/make_communicator.hpp"

#include <cstdlib>
#include <hortator/error.hpp>
#include <string_view>

#include "base/text.hpp"
#include "comm/checked_communicator.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/self_communicator.hpp"
#include "comm/watched_communicator.hpp"

namespace hortator::comm {
namespace {

std::unique_ptr<Communicator> make_unchecked(const mpi::Communicator& world, c10::Device device) {
  if (world.size() == 1) return std::make_unique<SelfCommunicator>(device);
  if (device.is_cpu()) return std::make_unique<MpiCommunicator>(mpi::Communicator::duplicate(world.get()));
  throw UsageError(
      {.what = text::concat("there is no communicator for tensors on ", device, " over ", world.size(), " ranks"),
       .why = "this version carries CPU tensors only; MPI never touches device memory",
       .hint = "set .cpu = true in the options, or run one rank only"});
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks) {
  auto made = make_unchecked(world, device);
  if (checks == Checks::on) {
    made = std::make_unique<CheckedCommunicator>(std::move(made), mpi::Communicator::duplicate(world.get()));
  }
  // One rank waits for nobody.
  if (world.size() == 1) return made;
  return std::make_unique<WatchedCommunicator>(std::move(made), world.membership().derive(0, world.size()));
}

Checks checks_from_environment() {
  const char* debug = std::getenv("HORTATOR_DEBUG");
  return debug != nullptr && std::string_view(debug) == "1" ? Checks::on : Checks::off;
}

}  // namespace hortator::comm
