// A kind of device that the program has never heard of: it is used like any other, and asked for what it can do.
#include <torch/optim/optimizer.h>

#include <cstdlib>
#include <hortator/error.hpp>

#include "accelerator/training/recordable.hpp"
#include "comm/backends/make_communicator.hpp"
#include "machine/device/device.hpp"
#include "runtime/banner.hpp"
#include "runtime/world.hpp"
#include "step/optimizer/fused_fit.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"

using namespace hortator;
using test::far_device;

TEST_CASE("ranks work on the accelerator of the build, whatever its kind", "[far]") {
  unsetenv("HORTATOR_DEVICE");
  const runtime::World world({});
  const bool is_alone = world.comm().size() == 1;
  CHECK(world.device() == far_device);
  CHECK(world.distributed_type() == (is_alone ? DistributedType::no : DistributedType::multi_gpu));
  CHECK(runtime::banner_facts(world).device == "far (Host)");
  const runtime::World on_cpu({.cpu = true});
  CHECK(on_cpu.device() == c10::Device(c10::kCPU));
  CHECK(runtime::banner_facts(on_cpu).device == "cpu");
}

TEST_CASE("HORTATOR_DEVICE takes the name of the kind, and refuses one for which the build is not", "[far]") {
  setenv("HORTATOR_DEVICE", "far", 1);
  CHECK(runtime::World({}).device() == far_device);
  setenv("HORTATOR_DEVICE", "cuda", 1);
  CHECK_THROWS_WITH(runtime::World({}), ContainsSubstring("built without CUDA"));
  unsetenv("HORTATOR_DEVICE");
}

TEST_CASE("ranks exchange tensors of a kind of device that no back end carries", "[far]") {
  const auto world = mpi::Communicator::world();
  const auto all = comm::make_communicator(world, far_device, comm::Checks::off);
  const int ranks = world.size();
  auto tensor = at::full({5}, world.rank() + 1.0).to(far_device);
  all->all_reduce(tensor, comm::ReduceOp::sum).wait();
  CHECK(tensor.device() == far_device);
  CHECK(at::equal(tensor.to(at::kCPU), at::full({5}, ranks * (ranks + 1) / 2.0)));
  auto from_last = at::full({3}, static_cast<double>(world.rank())).to(far_device);
  all->broadcast(from_last, ranks - 1).wait();
  CHECK(at::equal(from_last.to(at::kCPU), at::full({3}, ranks - 1.0)));
}

TEST_CASE("a kind without fused kernels or recordings is not given any", "[far]") {
  const auto* const kind = machine::kind_of(far_device);
  REQUIRE(kind != nullptr);
  CHECK(accelerator::why_not_recordable({.kind = kind}) == "Far devices cannot record work");
  for (const auto device : {far_device, c10::Device(c10::kCPU)}) {
    auto parameter = at::ones({4}, device);
    parameter.mutable_grad() = at::zeros({4}, device);
    CHECK(step::fits_fused_kernel(torch::optim::OptimizerParamGroup({parameter})) == device.is_cpu());
  }
}
