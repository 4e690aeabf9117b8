// How ZeRO changes the user's modules and optimizers, what it gives back, and what it refuses.
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

TEST_CASE("optimizers that do not step element by element are refused by name") {
  struct Own : torch::optim::SGD {
    using SGD::SGD;
  };
  Accelerator accelerator({.zero = {.stage = 1}});
  torch::nn::Linear net(3, 3);
  torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1));
  CHECK_THROWS_WITH(accelerator.prepare(lbfgs), ContainsSubstring("torch::optim::LBFGS") &&
                                                    ContainsSubstring("depends on all parameters together"));
  Own own(net->parameters(), torch::optim::SGDOptions(0.1));
  CHECK_THROWS_WITH(accelerator.prepare(own),
                    ContainsSubstring("Own") && ContainsSubstring("may look at whole parameters"));
}

TEST_CASE("options that ZeRO does not support are refused before anything is trained") {
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 4}}), ContainsSubstring("zero.stage is 4"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 1, .shard_group = -2}}),
                    ContainsSubstring("zero.shard_group is -2"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 3, .int8_gathers = true}, .reproducible = true}),
                    ContainsSubstring("reproducible = true"));
  CHECK_THROWS_WITH(
      Accelerator({.ddp = {.comm_hook = DDPCommunicationHookType::bf16, .error_feedback = true}, .zero = {.stage = 2}}),
      ContainsSubstring("error_feedback with zero.stage"));
  CHECK_THROWS_WITH(zero_config("FULL_SHART"), ContainsSubstring("FULL_SHARD"));
  CHECK(zero_config("SHARD_GRAD_OP").stage == 2);
}

TEST_CASE("writing a parameter outside its optimizer is an error that names it; summoned, it can be written") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  {
    const at::NoGradGuard no_grad;
    const auto full = accelerator.summon_full_parameters(model);
    net->second->weight.mul_(0.5).add_(1);
    model(batch(accelerator, 0));
  }
  const auto halved = net->second->weight.detach().clone();
  CHECK(halved.mean().item<double>() == Approx(1).margin(0.1));
  {
    const at::NoGradGuard no_grad;
    const auto full = accelerator.summon_full_parameters(model, {.writeback = false});
    net->second->weight.zero_();
  }
  CHECK(at::equal(net->second->weight.detach(), halved));
  accelerator.backward(model(batch(accelerator, 0)).sum());
  optimizer.step();
  CHECK(!at::equal(net->second->weight.detach(), halved));
  accelerator.wait_for_everyone();
  {
    const at::NoGradGuard no_grad;
    net->second->weight.mul_(1);
  }
  CHECK_THROWS_WITH(model(batch(accelerator, 0)), ContainsSubstring("second.weight' was written past its optimizer"));
}

TEST_CASE("if one rank has written a parameter outside its optimizer, summoning full parameters throws on all ranks") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  if (accelerator.is_last_process()) {
    const at::NoGradGuard no_grad;
    net->second->weight.mul_(1);
  }
  CHECK_THROWS_WITH(accelerator.summon_full_parameters(model),
                    ContainsSubstring("second.weight' was written past its optimizer"));
  accelerator.wait_for_everyone();
}

TEST_CASE("free_memory gives module and optimizer their own parameters back, and another stage continues from there") {
  const auto run = [](const std::vector<int>& stages) {
    Shardable net;
    auto adamw = test::make_adamw(net);
    int step = 0;
    for (const int stage : stages) {
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
      const auto own = adamw->param_groups()[0].params();
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      for (int i = 0; i < 2; ++i) {
        accelerator.backward(model(batch(accelerator, step++)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
      }
      accelerator.free_memory();
      for (std::size_t i = 0; i < own.size(); ++i) CHECK(adamw->param_groups()[0].params()[i].is_same(own[i]));
      CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("had freed it"));
    }
    return copies_of(*net);
  };
  const auto expected = run({0, 0, 0});
  CHECK(are_equal(run({0, 2, 0}), expected));
  CHECK(are_equal(run({1, 3, 2}), expected));
}

TEST_CASE("destroyed optimizers and modules are left alone") {
  Accelerator accelerator({.zero = {.stage = 2}});
  {
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    optimizer.step();
  }
  CHECK_NOTHROW(accelerator.free_memory());
  Shardable net;
  {
    Accelerator other({.zero = {.stage = 1}});
    auto model = other.prepare(net);
  }
  const auto before = net->scale.detach().clone();
  {
    const at::NoGradGuard no_grad;
    net->scale.add_(1);  // parameters belong to each rank again
  }
  CHECK(at::equal(net->scale.detach(), before + 1));
  accelerator.wait_for_everyone();
}

TEST_CASE("parameters that are added to an optimizer later are sharded, too") {
  const auto run = [](int stage) {
    Accelerator accelerator({.zero = {.stage = stage}});
    Shardable net;
    torch::optim::AdamW adamw(net->first->parameters(), torch::optim::AdamWOptions(1e-2));
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    for (int step = 0; step < 4; ++step) {
      if (step == 2) adamw.add_param_group(torch::optim::OptimizerParamGroup(net->second->parameters()));
      accelerator.backward(model(batch(accelerator, step)).square().mean());
      optimizer.step();
      model.zero_grad();
    }
    accelerator.wait_for_everyone();
    return copies_of(*net);
  };
  const auto expected = run(0);
  for (const int stage : {1, 2}) CHECK(are_equal(run(stage), expected));
}

TEST_CASE("get_state_dict gives the main process whole tensors, or each rank its slices") {
  Accelerator accelerator({.zero = {.stage = 2}});
  Shardable net;
  const auto expected = net->second->weight.detach().clone();
  auto model = accelerator.prepare(net);
  const auto full = accelerator.get_state_dict(model);
  CHECK(full.empty() != accelerator.is_main_process());
  if (accelerator.is_main_process()) {
    CHECK(at::equal(full.get<at::Tensor>("second.weight"), expected));
    CHECK(full.get<at::Tensor>("frozen.weight").sizes() == at::IntArrayRef{5, 33});
    CHECK(full.contains("calls"));
  }
  const auto mine = accelerator.get_state_dict(model, {.sharded = true}).get<at::Tensor>("second.weight");
  const auto whole = accelerator.gather_to_main(mine);
  if (accelerator.is_main_process()) CHECK(at::equal(*whole, expected.reshape({-1})));
}

TEST_CASE("what ranks write to summoned parameters is the same in all replicas of the shards") {
  const int ranks = State().num_processes();
  for (const int stage : {1, 2, 3}) {
    for (const int group : {1, 2}) {
      if (ranks % group != 0) continue;
      INFO("stage " << stage << ", groups of " << group);
      Accelerator accelerator({.zero = {.stage = stage, .shard_group = group}});
      torch::nn::Linear net(4, 4);
      torch::optim::SGD sgd(net->parameters(), 0.1);
      auto [model, optimizer] = accelerator.prepare(net, sgd);
      {
        const at::NoGradGuard no_grad;
        const auto full = accelerator.summon_full_parameters(model);
        net->weight.fill_(accelerator.process_index() + 1.0);
        net->bias.fill_(accelerator.process_index() + 1.0);
      }
      CHECK(test::same_on_all_ranks(accelerator, net->weight));
      CHECK(test::same_on_all_ranks(accelerator, net->bias));
      CHECK((net->weight <= group).all().item<bool>());  // a rank of the first group has written it
      accelerator.backward(model(at::ones({2, 4})).sum());
      optimizer.step();
      accelerator.wait_for_everyone();
      CHECK(test::same_on_all_ranks(accelerator, net->weight));
    }
  }
}

TEST_CASE("chosen parameters are summoned, and the values of the rank that modifies them count") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator({.zero = {.stage = stage}});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    const auto before = copies_of(*net);
    const int modifier = accelerator.num_processes() - 1;
    {
      const at::NoGradGuard no_grad;
      const auto gathered = accelerator.summon_full_parameters(
          model, {.parameters = {"second", "first.bias"}, .modifier_rank = modifier});
      if (accelerator.process_index() == modifier) net->second->weight.mul_(2).add_(1);
      if (accelerator.process_index() == 0 && modifier != 0) net->first->bias.fill_(9);  // is lost
    }
    const auto after = copies_of(*net);
    const auto names = net->named_parameters().keys();
    for (std::size_t i = 0; i < names.size(); ++i) {
      INFO(names[i]);
      const bool is_modified = names[i] == "second.weight" || names[i] == "tied.weight";
      CHECK(at::equal(after[i], is_modified ? before[i] * 2 + 1 : before[i]));
      CHECK(test::same_on_all_ranks(accelerator, after[i]));
    }
    const auto kept = net->second->weight.detach().clone();
    {
      const auto gathered = accelerator.summon_full_parameters(model, {.writeback = false, .parameters = {"second"}});
      const at::NoGradGuard no_grad;
      net->second->weight.zero_();
    }
    CHECK(at::equal(net->second->weight.detach(), kept) == (stage > 0));
    accelerator.wait_for_everyone();
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    optimizer.step();
    CHECK_THROWS_WITH(accelerator.summon_full_parameters(model, {.parameters = {"secnd"}}),
                      ContainsSubstring("no parameter or module 'secnd'"));
    CHECK_THROWS_WITH(accelerator.summon_full_parameters(model, {.modifier_rank = modifier + 1}),
                      ContainsSubstring("modifier_rank is " + std::to_string(modifier + 1)));
    if (modifier == 0) continue;
    const int mine = accelerator.process_index();
    CHECK_THROWS_WITH(accelerator.summon_full_parameters(model, {.modifier_rank = mine}),
                      ContainsSubstring("summon_full_parameters()"));
  }
}

TEST_CASE("a step of the user's own optimizer past its handle is an error on all ranks") {
  enum class Clears { never, before_forward, before_backward };
  for (const int stage : {1, 2, 3}) {
    for (const auto clears : {Clears::never, Clears::before_forward, Clears::before_backward}) {
      INFO("stage " << stage << ", case " << static_cast<int>(clears));
      Accelerator accelerator({.zero = {.stage = stage}});
      if (clears == Clears::before_backward && accelerator.num_processes() == 1) continue;
      Shardable net;
      auto adamw = test::make_adamw(net);
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      accelerator.backward(model(batch(accelerator, 0)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
      if (clears == Clears::before_forward) adamw->zero_grad();
      const auto loss = model(batch(accelerator, 1)).square().mean();
      if (clears == Clears::before_backward) adamw->zero_grad();
      accelerator.backward(loss);
      adamw->step();
      accelerator.wait_for_everyone();
      CHECK_THROWS_WITH(model(batch(accelerator, 2)), ContainsSubstring("was stepped past its optimizer's handle"));
      CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("was stepped past its optimizer's handle"));
      accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("an optimizer that was not given to prepare is an error where gradients are with the shards") {
  for (const int stage : {2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator({.zero = {.stage = stage}});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto model = accelerator.prepare(net);
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    adamw->step();
    CHECK_THROWS_WITH(model(batch(accelerator, 1)),
                      ContainsSubstring("No prepared optimizer steps the parameters of model 0"));
    {
      const at::NoGradGuard no_grad;
      CHECK_NOTHROW(model(batch(accelerator, 1)));
    }
    auto optimizer = accelerator.prepare(*adamw);
    accelerator.backward(model(batch(accelerator, 1)).square().mean());
    CHECK_NOTHROW(optimizer.step());
    accelerator.wait_for_everyone();
  }
}
