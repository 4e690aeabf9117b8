#include "comm/backends/make_communicator.hpp"

#include <cstdlib>
#include <hortator/error.hpp>

#include "machine/device/device.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("CPU tensors travel through the node's memory, devices of several ranks are refused with the reason") {
  const auto world = mpi::Communicator::world();
  const c10::Device cuda(c10::kCUDA, 0);
  CHECK(comm::make_communicator(world, c10::kCPU, comm::Checks::off)->name() == (world.size() == 1 ? "self" : "node"));
  if (world.size() == 1) {
    CHECK(comm::make_communicator(world, cuda, comm::Checks::off)->name() == "self");
  } else {
    // With CUDA it depends on the machine: its tests are in nccl/.
    if (machine::accelerator_kind() != nullptr) return;
    CHECK_THROWS_WITH(comm::make_communicator(world, cuda, comm::Checks::off),
                      ContainsSubstring("Asked for nccl in a build without it, for tensors on cuda:0") &&
                          ContainsSubstring("HORTATOR_WITH_CUDA=ON"));
  }
}

TEST_CASE("HORTATOR_COMMUNICATOR selects the back end, and unknown names are refused") {
  const auto world = mpi::Communicator::world();
  setenv("HORTATOR_COMMUNICATOR", "mpi", 1);
  CHECK(comm::make_communicator(world, c10::kCPU, comm::Checks::off)->name() == (world.size() == 1 ? "self" : "mpi"));
  setenv("HORTATOR_COMMUNICATOR", "nod", 1);
  CHECK_THROWS_WITH(comm::make_communicator(world, c10::kCPU, comm::Checks::off),
                    ContainsSubstring("HORTATOR_COMMUNICATOR=nod") && ContainsSubstring("use auto, self, mpi, node"));
  setenv("HORTATOR_COMMUNICATOR", "self", 1);
  if (world.size() == 1) {
    CHECK(comm::make_communicator(world, c10::kCPU, comm::Checks::off)->name() == "self");
  } else {
    CHECK_THROWS_WITH(comm::make_communicator(world, c10::kCPU, comm::Checks::off),
                      ContainsSubstring("HORTATOR_COMMUNICATOR=self, but the run has"));
  }
  // One rank that has another setting is named.
  setenv("HORTATOR_COMMUNICATOR", world.rank() == 1 ? "mpi" : "node", 1);
  if (world.size() > 1) {
    CHECK_THROWS_WITH(comm::make_communicator(world, c10::kCPU, comm::Checks::off),
                      ContainsSubstring("The communicator (HORTATOR_COMMUNICATOR) differs"));
  }
  unsetenv("HORTATOR_COMMUNICATOR");
}

TEST_CASE("HORTATOR_DEBUG=1 enables checks, which name ranks that differ") {
  unsetenv("HORTATOR_DEBUG");
  CHECK(comm::checks_from_environment() == comm::Checks::off);
  setenv("HORTATOR_DEBUG", "1", 1);
  CHECK(comm::checks_from_environment() == comm::Checks::on);
  unsetenv("HORTATOR_DEBUG");

  const auto world = mpi::Communicator::world();
  const auto checked = comm::make_communicator(world, c10::kCPU, comm::Checks::on);
  if (world.size() == 1) return;
  CHECK_THROWS_WITH(checked->all_reduce(at::ones({world.rank() + 1}), comm::ReduceOp::sum),
                    ContainsSubstring("The ranks pass tensors of different shapes"));
}
