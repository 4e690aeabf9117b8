// The parts of users' divided modules: what a rank holds, and how they become whole again.
#include <algorithm>
#include <hortator/error.hpp>

#include "parallel/tensor/divided_module.hpp"
#include "unit/parallel/tensor/failing_communicator.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"
#include "unit/parallel/tensor/user_net.hpp"

using namespace hortator;
using parallel::DividedModule;
using test::TensorGroup;
using namespace test::user_net;

TEST_CASE("a rank holds its part of the parameters, and gets them whole again") {
  const TensorGroup group;
  auto alone = net_of(Style::fused_chunk), divided = net_of(Style::fused_chunk);
  std::int64_t whole = 0, held = 0;
  const DividedModule parts(*divided, plan_for(Style::fused_chunk), group.ranks);
  for (const auto& one : parts.parameters()) {
    whole += group.whole(one.parameter).numel();
    held += one.parameter.numel();
  }
  CHECK(held * group.ranks->size() == whole);
  parts.restore(group.host);
  const auto restored = divided->named_parameters();
  for (const auto& item : alone->named_parameters()) {
    INFO(item.key());
    CHECK_FALSE(parallel::is_divided(restored[item.key()]));
    CHECK(at::equal(restored[item.key()], item.value()));
  }
}

TEST_CASE("a gradient that only some ranks have is whole after division, with zeros for the others") {
  const TensorGroup group;
  auto divided = net_of(Style::separate);
  const DividedModule parts(*divided, plan_for(Style::separate), group.ranks);
  const auto& one = parts.parameters().front();
  if (group.host.rank() == 0) {
    const parallel::PartsOnly here;
    one.parameter.mutable_grad() = at::ones(one.part);
  }
  parts.restore(group.host);
  REQUIRE(one.parameter.grad().sizes() == one.parameter.sizes());
  CHECK(one.parameter.grad().sum().item<double>() * group.ranks->size() == static_cast<double>(one.parameter.numel()));
}

TEST_CASE("if one rank cannot join a part, all ranks throw, and the module has its parts as they were") {
  const TensorGroup group;
  if (group.ranks->size() == 1) return;
  const bool fails = group.host.rank() + 1 == group.host.size();
  test::FailingCommunicator failing(*group.communicator, fails ? 2 : 0);
  auto divided = net_of(Style::fused_chunk);
  DividedModule parts(*divided, plan_for(Style::fused_chunk),
                      std::make_shared<parallel::TensorRanks>(failing, failing));
  std::vector<at::Tensor> before;
  {
    const parallel::PartsOnly here;
    for (const auto& one : parts.parameters()) before.push_back(one.parameter.detach().clone());
  }
  CHECK_THROWS_WITH(parts.lend_together(group.host), ContainsSubstring("no memory for the whole"));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& parameter = parts.parameters()[i].parameter;
    CHECK(parallel::is_divided_parameter(parameter));
    const parallel::PartsOnly here;
    CHECK(at::equal(parameter, before[i]));
  }
  CHECK_NOTHROW(parts.check_untouched());
}

TEST_CASE("a plan that does not fit changes nothing") {
  const TensorGroup group;
  auto net = net_of(Style::separate);
  CHECK_THROWS_WITH(DividedModule(*net, {{"nothing", TensorDivision::columns}}, group.ranks),
                    ContainsSubstring("fits no parameter"));
  for (const auto& parameter : net->parameters()) CHECK_FALSE(parallel::is_divided(parameter));
  CHECK_THROWS_WITH(parallel::plan_of(*net), ContainsSubstring("has no plan"));
}

TEST_CASE("operators without a divided tensor are not intercepted") {
  const TensorGroup group;
  torch::nn::Linear layer(4, 4);
  const auto y = layer(at::ones({2, 4}));
  CHECK_FALSE(parallel::is_divided(y));
  CHECK(group.ranks->traffic().sums == 0);
}
