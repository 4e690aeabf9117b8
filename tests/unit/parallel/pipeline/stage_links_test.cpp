// What travels between stages, on a ring of all ranks.
#include "parallel/pipeline/stage_links.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;
using parallel::StageTensors;

TEST_CASE("tensors arrive with their types, shapes and whether they need gradients") {
  const auto world = mpi::Communicator::world();
  parallel::StageLinks links(world, at::kCPU);
  torch::manual_seed(1);  // the same numbers on all ranks
  const auto turned = at::arange(12, at::kFloat).view({3, 4}).t();
  const StageTensors sent = {
      turned.clone().requires_grad_(),    at::arange(5, at::kLong),  at::Tensor(),
      at::ones({2, 0, 3}, at::kBFloat16), at::ones({}, at::kDouble), at::randn({3}, at::kComplexFloat).conj()};
  links.send_activations(1, sent);
  const auto found = links.receive_activations(1);
  REQUIRE((found && found->size() == sent.size()));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const auto& one = (*found)[i];
    REQUIRE(one.defined() == sent[i].defined());
    if (!one.defined()) continue;
    CHECK(one.scalar_type() == sent[i].scalar_type());
    CHECK(at::equal(one, sent[i]));
    CHECK(one.requires_grad() == sent[i].requires_grad());
    CHECK(one.is_leaf());
  }
  links.finish();
}

TEST_CASE("a failure travels in place of tensors, in both directions") {
  parallel::StageLinks links(mpi::Communicator::world(), at::kCPU);
  links.send_activations(1, {});
  links.send_gradients(1, {});
  links.send_gradients(1, StageTensors{at::ones({2})});
  CHECK(!links.receive_activations(1));
  CHECK(!links.receive_gradients(1));
  CHECK(links.receive_gradients(1)->size() == 1);
  links.finish();
}

TEST_CASE("what a message has no room for is an error before anything is sent") {
  parallel::StageLinks links(mpi::Communicator::world(), at::kCPU);
  CHECK_THROWS_WITH(links.send_activations(1, StageTensors(9, at::ones({1}))), ContainsSubstring("sends 9 tensors"));
  CHECK_THROWS_WITH(links.send_activations(1, StageTensors{at::ones({1, 1, 1, 1, 1, 1, 1, 1, 1})}),
                    ContainsSubstring("a tensor of 9 dimensions"));
}
