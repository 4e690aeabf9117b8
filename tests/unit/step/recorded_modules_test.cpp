// What ends the recording of a step: modules that compute something else than when it was recorded.
#include "step/capture/recorded_modules.hpp"

#include <ATen/ops/ones.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "support/catch.hpp"

namespace {

struct Recorded {
  Recorded() { modules.add(*net); }
  torch::nn::Sequential net{torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2)};
  hortator::step::RecordedModules modules;
};

}  // namespace

TEST_CASE("values that change in place leave recorded modules unchanged") {
  const Recorded one;
  const at::NoGradGuard no_grad;
  for (auto& parameter : one.net->parameters()) parameter.mul_(2);
  for (auto& buffer : one.net->buffers()) buffer.fill_(3);
  CHECK(one.modules.are_unchanged());
}

TEST_CASE("a parameter that is frozen or moved changes recorded modules") {
  const Recorded frozen;
  frozen.net->parameters()[0].requires_grad_(false);
  CHECK_FALSE(frozen.modules.are_unchanged());
  frozen.net->parameters()[0].requires_grad_(true);
  CHECK(frozen.modules.are_unchanged());
  const Recorded moved;
  moved.net->parameters()[0].set_data(at::ones({2, 3}));
  CHECK_FALSE(moved.modules.are_unchanged());
}

TEST_CASE("a layer in another mode changes recorded modules, until it is back") {
  Recorded one;
  one.net[1]->eval();
  CHECK_FALSE(one.modules.are_unchanged());
  one.net[1]->train();
  CHECK(one.modules.are_unchanged());
  one.net->eval();
  CHECK_FALSE(one.modules.are_unchanged());
}
