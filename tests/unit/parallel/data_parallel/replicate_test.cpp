#include "parallel/data_parallel/replicate.hpp"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <hortator/error.hpp>

#include "comm/mpi/mpi_communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("all ranks get rank 0's parameters and buffers") {
  const auto host = mpi::Communicator::world();
  comm::MpiCommunicator communicator(mpi::Communicator::world());
  torch::nn::BatchNorm1d model(3);
  {
    const at::NoGradGuard no_grad;
    model->weight.fill_(host.rank() + 1);
    model->running_mean.fill_(host.rank() + 2);
    model->num_batches_tracked.fill_(host.rank() + 3);
  }
  parallel::replicate(*model, communicator, host);
  CHECK(at::equal(model->weight, at::full({3}, 1.0)));
  CHECK(at::equal(model->running_mean, at::full({3}, 2.0)));
  CHECK(model->num_batches_tracked.item<int>() == 3);
  CHECK(model->weight.requires_grad());
}

TEST_CASE("models that differ between ranks are an error on all of them") {
  const auto host = mpi::Communicator::world();
  if (host.size() == 1) return;
  comm::MpiCommunicator communicator(mpi::Communicator::world());
  torch::nn::Linear model(3, host.rank() == host.size() - 1 ? 4 : 2);
  CHECK_THROWS_WITH(parallel::replicate(*model, communicator, host),
                    ContainsSubstring("The model differs between ranks"));
}
