// Statistics over the batches of all ranks, on a device.
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <hortator/parallel/sync_batch_norm.hpp>
#include <hortator/parallel/synchronize_batch_norms.hpp>

#include "far_training.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "support/called_operators.hpp"
#include "support/catch.hpp"

using namespace hortator;
using test::far_device;

TEST_CASE("without a momentum nothing waits for the number of batches on the device", "[far]") {
  const auto statistics = std::make_shared<parallel::SharedStatistics>(test::communicator_of({}));
  if (statistics->ranks() == 1) return;  // plain BatchNorm, whose statistics the CPU does not return to this device
  SyncBatchNorm1d norm(torch::nn::BatchNormOptions(3).momentum(std::nullopt));
  norm->to(far_device);
  norm->join(statistics);
  const at::NoGradGuard no_grad;
  const auto x = at::arange(15, at::kFloat).view({5, 3});
  for (int batch = 0; batch < 3; ++batch) {
    const auto input = (x + batch).to(far_device);
    const test::CalledOperators operators;
    norm->forward(input);
    CHECK(std::count(operators.names().begin(), operators.names().end(), "aten::item") == 0);
  }
  CHECK(at::allclose(norm->running_mean.to(at::kCPU), x.mean(0) + 1));
}

TEST_CASE("a marked BatchNorm on a device is found in forward, in inference mode and in backward", "[far]") {
  const auto statistics = std::make_shared<parallel::SharedStatistics>(test::communicator_of({}));
  if (statistics->ranks() == 1) return;
  torch::nn::BatchNorm1d norm(torch::nn::BatchNormOptions(3).momentum(1.0));
  CHECK(synchronize_batch_norms(norm) == 1);
  norm->to(far_device);
  parallel::join_synchronized_norms(*norm, statistics);
  const int rank = mpi::Communicator::world().rank();
  const auto x = at::arange(15, at::kFloat).view({5, 3}).square();
  const auto joint_mean = [&](double shift) { return x.mean(0) + shift + (statistics->ranks() - 1) / 2.0; };
  const auto is_mean = [&](double shift) { return at::allclose(norm->running_mean.to(at::kCPU), joint_mean(shift)); };
  auto input = (x + rank).to(far_device).requires_grad_();
  norm->forward(input).square().sum().backward();
  CHECK(is_mean(0));
  CHECK(input.grad().defined());
  const c10::InferenceMode inference;
  norm->forward((x + rank + 7).to(far_device));
  CHECK(is_mean(7));
}
