// Stage 3 over two nodes: no rank has all parameters, and those that operators use are gathered from all ranks.
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "unit/accelerator/zero/two_nodes.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::back_ends;
using test::batch;
using test::check_same;
using test::copies_of;
using test::plans;
using test::Shardable;
using test::train_over_nodes;
using test::use_communicator;

namespace {

/// The error that `act` throws; empty if it throws none.
std::string problem_in(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool has_data(const at::Tensor& tensor) {
  try {
    return tensor.const_data_ptr() != nullptr;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("over nodes stage 3 trains as stage 2, bit for bit, and close to stage 0") {
  use_communicator(back_ends[0]);  // before the nodes are first determined
  const test::Folder folder(State(), "zero_nodes_disk");
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto& [name, plan] : plans) {
      INFO(communicator << ", " << name);
      const auto second = train_over_nodes({.stage = 2}, plan);
      CHECK(!are_equal(second.parameters, copies_of(*Shardable(plan.type))));
      check_same(train_over_nodes({.stage = 3}, plan), second);
      if (name == "plain") {
        check_same(train_over_nodes({.stage = 3, .resident_bytes = 1}, plan), second);
        check_same(train_over_nodes({.stage = 3, .resident_bytes = 1 << 20}, plan), second);
      }
      const auto plain = train_over_nodes({.stage = 0}, plan);
      const bool is_rounded = plan.type != at::kFloat || plan.precision != Precision::no;
      if (!is_rounded) CHECK(are_close(second.parameters, plain.parameters, 1e-5));
    }
    INFO(communicator << ", moments and gradients in a folder");
    check_same(train_over_nodes({.stage = 3, .offload_optimizer = folder.path(), .resident_bytes = 1 << 10}),
               train_over_nodes({.stage = 2}));
    INFO("everything in a folder");
    for (const auto& name : {"plain", "accumulated and clipped", "in bf16, with copies in fp32"}) {
      INFO(name);
      const auto& plan = plans.at(name);
      check_same(train_over_nodes({.stage = 3,
                                   .offload_optimizer = folder.path(),
                                   .offload_parameters = folder.path(),
                                   .resident_bytes = 1 << 10},
                                  plan),
                 train_over_nodes({.stage = 2}, plan));
    }
    INFO("some stay in memory");  // other arrays, and norms are summed in another order
    CHECK(are_close(train_over_nodes({.stage = 3, .keep_resident = {"second", "norm.weight"}}).parameters,
                    train_over_nodes({.stage = 2}).parameters, 1e-5));
  }
}

TEST_CASE("shard groups within a node, and across nodes, train as at stage 2") {
  use_communicator(back_ends[0]);
  const int ranks = State().num_processes();
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (int group = 1; group <= ranks; ++group) {
      if (ranks % group != 0) continue;
      INFO(communicator << ", groups of " << group);
      check_same(train_over_nodes({.stage = 3, .shard_group = group}),
                 train_over_nodes({.stage = 2, .shard_group = group}));
    }
  }
  if (ranks != 4) return;
  use_communicator("node");
  check_same(train_over_nodes(zero_config("HYBRID_SHARD")), train_over_nodes({.stage = 2, .shard_group = 2}));
}

TEST_CASE("between uses a rank has only its own slices") {
  use_communicator("node");
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = 3, .resident_bytes = 1}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  accelerator.backward(model(batch(accelerator, 0)).square().mean());
  optimizer.step();
  for (const auto& parameter : net->parameters()) CHECK(!has_data(parameter));
  const auto& slices = adamw->param_groups()[0].params();
  CHECK(std::count_if(slices.begin(), slices.end(), [](const at::Tensor& slice) {
          return slice.numel() > 0 && !has_data(slice);
        }) == 1);  // the frozen parameter
  model(batch(accelerator, 1));
  for (const auto& parameter : net->parameters()) CHECK(!has_data(parameter));
  accelerator.wait_for_everyone();
}

TEST_CASE("over nodes, ranks that use parameters in different orders all throw, and can continue") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-6, .find_unused_parameters = true}, .zero = {.stage = 3}});
    at::manual_seed(7);
    torch::nn::Sequential net;
    for (int i = 0; i < 4; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(7, 7).bias(false)));
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [prepared, stepper] = accelerator.prepare(net, sgd);
    auto& model = prepared;
    auto& optimizer = stepper;
    const auto layer = [&](int i) { return net->at<torch::nn::LinearImpl>(static_cast<std::size_t>(i)).weight; };
    const auto step = [&] {
      accelerator.backward(model(batch(accelerator, 0)).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    };
    step();
    const bool is_last = accelerator.is_last_process();
    const auto last = std::to_string(accelerator.num_processes() - 1);

    // The last rank uses another layer.
    const auto crossed = problem_in([&] { at::linear(batch(accelerator, 0), layer(is_last ? 3 : 2)).sum(); });
    CHECK_THAT(crossed, ContainsSubstring("in different orders") && ContainsSubstring("rank " + last + ": 3.weight") &&
                            ContainsSubstring(": 2.weight"));
    step();

    // Evaluation on one rank, while the others are in a step.
    accelerator.backward(model(batch(accelerator, 0)).square().mean());
    const auto on_one_rank = problem_in([&] {
      if (!is_last) return optimizer.step();
      const at::NoGradGuard no_grad;
      model(batch(accelerator, 0));
    });
    CHECK_THAT(on_one_rank, ContainsSubstring("The ranks are in different collectives") &&
                                ContainsSubstring("all_gather") && ContainsSubstring("all_reduce"));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("over nodes, whole parameters can be read, written, exported by name, and saved in files") {
  use_communicator(back_ends[0]);
  const test::Folder folder(State(), "zero_nodes_files");
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = 3}});
    Shardable net;
    const auto expected = net->second->weight.detach().clone();
    auto model = accelerator.prepare(net);
    const auto full = accelerator.get_state_dict(model);
    CHECK(full.empty() != accelerator.is_main_process());
    if (accelerator.is_main_process()) CHECK(at::equal(full.get<at::Tensor>("second.weight"), expected));
    const auto mine = accelerator.get_state_dict(model, {.sharded = true}).get<at::Tensor>("second.weight");
    const auto whole = accelerator.gather_to_main(mine);
    if (accelerator.is_main_process()) CHECK(at::equal(*whole, expected.reshape({-1})));
    {
      const at::NoGradGuard no_grad;
      const auto summoned = accelerator.summon_full_parameters(model);
      net->second->weight.fill_(2);
      if (accelerator.is_main_process()) model(batch(accelerator, 0));  // independent of other ranks
    }
    CHECK((net->second->weight == 2).all().item<bool>());
    accelerator.save_model(model, folder.path() / "safe");
    accelerator.save_model(model, folder.path() / "pickle", {.safe_serialization = false});
    CHECK((net->first->weight != 0).any().item<bool>());  // still sharded, still the same
    for (const auto* name : {"safe", "pickle"}) {
      Shardable other;
      accelerator.load_checkpoint_in_model(other, folder.path() / name);
      CHECK(are_equal(copies_of(*other), copies_of(*net)));
      {
        const at::NoGradGuard no_grad;
        const auto summoned = accelerator.summon_full_parameters(model);
        net->second->weight.zero_();
      }
      accelerator.load_checkpoint_in_model(model, folder.path() / name);
      CHECK(are_equal(copies_of(*other), copies_of(*net)));
    }
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("over nodes, checkpoints are written in shards, and resume at any stage") {
  const auto run = [](const test::Folder& folder, const std::string& name, const std::vector<int>& stages,
                      bool asynchronous) {
    std::vector<at::Tensor> parameters;
    for (const int stage : stages) {
      parameters = test::resume({.zero = {.stage = stage},
                                 .project = {.dir = folder.path() / name},
                                 .checkpoint = {.asynchronous = asynchronous}});
    }
    return parameters;
  };
  use_communicator("mpi");
  const test::Folder folder(State(), "zero_nodes_checkpoint");
  const auto expected = run(folder, "second", {2, 2}, false);
  CHECK(are_equal(run(folder, "third", {3, 3}, false), expected));
  CHECK(are_equal(run(folder, "mixed", {3, 2}, true), expected));
  CHECK(are_equal(run(folder, "other way", {2, 3}, true), expected));
}

TEST_CASE(
    "over nodes, free_memory and the Accelerator's destructor give parameters back; an error waits for no other rank") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    Shardable net;
    const auto before = copies_of(*net);
    {
      Accelerator accelerator({.zero = {.stage = 3}});
      auto model = accelerator.prepare(net);
      accelerator.free_memory();
      CHECK(has_data(net->first->weight));
      CHECK(are_equal(copies_of(*net), before));
      auto again = accelerator.prepare(net);
    }
    CHECK(are_equal(copies_of(*net), before));
    CHECK_THROWS_WITH(
        [&] {
          Accelerator accelerator({.zero = {.stage = 3}});
          auto model = accelerator.prepare(net);
          throw Error({.what = "of the program's own"});
        }(),
        ContainsSubstring("of the program's own"));
    CHECK_THROWS_WITH(net->first->weight.sum(), ContainsSubstring("has no values") && ContainsSubstring("free_memory"));
  }
}

TEST_CASE("over nodes, a model constructed while it is sharded equals one constructed at once") {
  use_communicator("node");
  const auto expected = [] {
    at::manual_seed(5);
    return copies_of(*torch::nn::Sequential(torch::nn::Linear(30, 40), torch::nn::Linear(40, 5)));
  }();
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = 3}});
  at::manual_seed(accelerator.is_main_process() ? 5 : 6);
  auto net =
      construct_deferred([] { return torch::nn::Sequential(torch::nn::Linear(30, 40), torch::nn::Linear(40, 5)); });
  auto model = accelerator.prepare(net);
  CHECK(are_equal(copies_of(*net), expected));
  accelerator.wait_for_everyone();
}

TEST_CASE(
    "over nodes, an exception within Ema::use() ends with trained weights, or a refusal until they are put back") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const int stage : {1, 2, 3}) {
      INFO(communicator << ", stage " << stage);
      Accelerator accelerator({.ddp = {.bucket_cap_mb = 3e-3}, .zero = {.stage = stage}});
      Shardable net;
      auto adamw = test::make_adamw(net);
      auto [model, optimizer] = accelerator.prepare(net, *adamw);
      Ema ema(accelerator, model, {.decay = 0.9});
      const auto step = [&, &model = model, &optimizer = optimizer](int number) {
        accelerator.backward(model(batch(accelerator, number)).square().mean());
        optimizer.step();
        optimizer.zero_grad();
        ema.update();
      };
      for (int i = 0; i < 3; ++i) step(i);
      const auto trained = copies_of(*net);
      accelerator.wait_for_everyone();
      try {
        const auto scope = ema.use();
        throw std::runtime_error("evaluation fails on all ranks");
      } catch (const std::runtime_error&) {
      }
      accelerator.wait_for_everyone();
      if (stage < 3) {  // each node has a copy of all parameters, which only all ranks can bring up to date
        CHECK_THROWS_WITH(step(3), ContainsSubstring("An exception has ended Ema::use()"));
        const auto scope = ema.use();
      }
      CHECK(are_equal(copies_of(*net), trained));
      CHECK_NOTHROW(step(3));
      accelerator.wait_for_everyone();
    }
  }
}
