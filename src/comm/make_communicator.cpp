#include "comm/make_communicator.hpp"

#include <cstdlib>
#include <string_view>

#include "comm/checked_communicator.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/nccl_backend.hpp"
#include "comm/self_communicator.hpp"

namespace hortator::comm {
namespace {

std::unique_ptr<Communicator> make_unchecked(const mpi::Communicator& world, c10::Device device) {
  if (world.size() == 1) return std::make_unique<SelfCommunicator>(device);
  if (device.is_cpu()) return std::make_unique<MpiCommunicator>(mpi::Communicator::duplicate(world.get()));
  return make_nccl_communicator(world, device, {});
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks) {
  auto plain = make_unchecked(world, device);
  if (checks == Checks::off) return plain;
  return std::make_unique<CheckedCommunicator>(std::move(plain), mpi::Communicator::duplicate(world.get()));
}

Checks checks_from_environment() {
  const char* debug = std::getenv("HORTATOR_DEBUG");
  return debug != nullptr && std::string_view(debug) == "1" ? Checks::on : Checks::off;
}

}  // namespace hortator::comm
