// How much of a device's memory parameters use that are paged for it, from the host and back.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "far_training.hpp"
#include "support/catch.hpp"

using namespace hortator;
using test::far_device;

namespace {

constexpr std::int64_t tower_width = 64;
constexpr std::int64_t tower_layers = 24;
constexpr std::int64_t tower_bytes = 4 * tower_layers * tower_width * (tower_width + 1);

std::vector<parallel::FlatParameters::Parameter> tower_parameters(const torch::nn::Sequential& tower) {
  std::vector<parallel::FlatParameters::Parameter> parameters;
  for (const auto& one : tower->named_parameters()) parameters.push_back({.name = one.key(), .tensor = one.value()});
  return parameters;
}

}  // namespace

TEST_CASE("a module on the host is used on the far device, where it never is as a whole", "[far]") {
  const auto host = mpi::Communicator::world();
  const auto ranks = test::communicator_of({});
  at::manual_seed(3);
  torch::nn::Sequential tower;
  for (int i = 0; i < tower_layers; ++i) tower->push_back(torch::nn::Linear(tower_width, tower_width));
  const at::NoGradGuard no_grad;
  const auto input = at::ones({1, tower_width});
  const auto expected = tower->forward(input);
  const auto weight = tower->parameters().front().clone();
  for (const auto home : {test::Home::in_host, test::Home::in_file}) {
    auto parameters = test::residence_of(home, far_device);
    parameters.resident_bytes = 1 << 16;  // otherwise a file's pages are larger than this module
    test::reset_far_peak();
    const auto before = test::far_bytes();
    parallel::FlatParameters flat(*ranks, tower_parameters(tower), {.first_bytes = 1 << 14, .bytes = 1 << 14},
                                  parallel::Masters::no,
                                  {.parameters = parameters, .sharded = host.size() > 1, .host = &host});
    for (int pass = 0; pass < 3; ++pass)
      CHECK(at::allclose(tower->forward(input.to(far_device)).to(at::kCPU), expected, 1e-5, 1e-5));
    flat.release();
    CHECK(test::far_peak() - before < tower_bytes / 2);
    CHECK(at::equal(tower->parameters().front(), weight));
  }
}
