// The real NCCL with the real device: one rank, since a machine for tests has one.
#include <ATen/ATen.h>

#include <hortator/error.hpp>

#include "comm/nccl/backend.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using comm::ReduceOp;

TEST_CASE("with one rank every verb returns its input") {
  if (!test::has_gpu()) return;
  const c10::Device cuda(c10::kCUDA, 0);
  const auto on_device = at::TensorOptions().device(cuda);
  const auto whole = comm::make_nccl_communicator(mpi::Communicator::world(), cuda, std::chrono::minutes(1));
  const auto part = whole->split(0, 0);
  for (auto* communicator : {whole.get(), part.get()}) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kShort, at::kBool, at::kLong}) {
      const auto sample = at::arange(12, on_device).remainder(2).view({3, 4}).to(type);
      for (const auto op : {ReduceOp::sum, ReduceOp::max, ReduceOp::product}) {
        auto tensor = sample.clone().t();
        communicator->all_reduce(tensor, op).wait();
        CHECK(at::equal(tensor, sample.t()));
      }
      auto copy = at::empty_like(sample);
      communicator->all_gather(copy, sample).wait();
      CHECK(at::equal(copy, sample));
      communicator->reduce_scatter(copy.zero_(), sample, ReduceOp::sum).wait();
      CHECK(at::equal(copy, sample));
      communicator->broadcast_all({copy, copy.t()}, 0).wait();
      CHECK(at::equal(copy, sample));
    }
    auto memory = communicator->allocate(1 << 20, at::kFloat).fill_(3);
    communicator->all_reduce(memory, ReduceOp::mean).wait();
    CHECK(memory.eq(3).all().item<bool>());
    communicator->barrier();
  }
  CHECK_THROWS_AS(whole->all_reduce(at::ones({2}), ReduceOp::sum), UsageError);
}

TEST_CASE("with a slow device results are complete after wait() only") {
  if (!test::has_gpu()) return;
  const c10::Device cuda(c10::kCUDA, 0);
  const auto communicator = comm::make_nccl_communicator(mpi::Communicator::world(), cuda, std::chrono::minutes(1));
  auto data = at::ones({512, 512}, at::TensorOptions().device(cuda));
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 20; ++k) data = at::mm(data, data).mul_(1.0 / 512);
    communicator->all_reduce(data, ReduceOp::sum).wait();
  }
  CHECK(data.eq(1).all().item<bool>());
}
