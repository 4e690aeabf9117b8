// ZeRO's shards of a model that is divided among tensor ranks, against the same model on one rank.
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::check_same;
using test::train;
using test::train_alone;

namespace {

/// All ranks in groups of `tensor`, with the ranks of different batches as shards.
AcceleratorOptions arranged(int tensor, int stage) {
  return {.zero = {.stage = stage}, .parallel = {.tensor = tensor}};
}

/// Two tensor ranks under each stage; on four ranks their parts are sharded.
std::vector<AcceleratorOptions> arrangements() { return {arranged(2, 1), arranged(2, 2), arranged(2, 3)}; }

std::string text_of(const AcceleratorOptions& options) {
  return "tensor " + std::to_string(options.parallel.tensor.value_or(1)) + ", stage " +
         std::to_string(options.zero.stage.value_or(0));
}

/// The norm of all gradients in the first step. `norm_type`: 1 for the sum of absolute values, infinity for the
/// largest.
double norm_of_first_step(const AcceleratorOptions& options, double norm_type) {
  Accelerator accelerator(options);
  auto net = test::user_transformer();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  auto [model, optimizer] = accelerator.prepare(*net, sgd);
  const auto& data = accelerator::Training::of(accelerator).data();
  accelerator.backward(test::user_loss(model, test::TokenRows(0, data.index(), data.size())));
  return accelerator.clip_grad_norm_(model.parameters(), 1e9, norm_type).item<double>();
}

}  // namespace

TEST_CASE("fifty steps of sharded parts follow those of one rank, with norms that count each parameter once") {
  for (const auto* family : {"llama", "user"}) {
    const auto expected = train_alone({.family = family});
    for (const auto& options : arrangements()) {
      INFO(family << ", " << text_of(options));
      const auto found = train({.family = family, .options = options});
      check_same(found.losses, expected.losses);
      check_same(found.norms, expected.norms, 1e-3);
      check_same({found.norms.front()}, {expected.norms.front()});
    }
  }
}

TEST_CASE("over nodes, parts that are gathered in int8 follow the losses of whole gathers, and checkpoints keep them") {
  if (State().num_nodes() == 1) return;
  const State state;
  const test::Folder folder(state, "zero_tensor_int8");
  auto options = arranged(2, 3);
  const auto whole = train({.options = options, .steps = 20});
  options.zero.int8_gathers = true;
  const auto int8 = train({.options = options, .steps = 20, .save = folder.path() / "first"});
  CHECK(int8.losses != whole.losses);
  check_same(int8.losses, whole.losses, 0.048 * whole.losses.front());
  train({.options = options, .steps = 0, .load = folder.path() / "first", .save = folder.path() / "second"});
  test::check_equal(test::tensors_in(folder.path() / "second"), test::tensors_in(folder.path() / "first"));
}

TEST_CASE("norms of other types count each sharded part once") {
  for (const double type : {1.0, 2.0, static_cast<double>(INFINITY)}) {
    double expected = 0;
    {
      const auto world = mpi::Communicator::world();
      std::vector<double> alone;
      {
        const test::FirstRanks first(1);
        if (first.is_in()) alone.push_back(norm_of_first_step({.communicator = first.handle()}, type));
      }
      expected = test::from_first(world, alone).front();
    }
    for (const auto& options : arrangements()) {
      INFO("norm " << type << ", " << text_of(options));
      CHECK(norm_of_first_step(options, type) == Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("micro-steps of sharded parts add up as on one rank") {
  const auto expected = train_alone({.family = "user", .options = {.gradient_accumulation_steps = 2}, .steps = 12});
  for (auto options : arrangements()) {
    INFO(text_of(options));
    options.gradient_accumulation_steps = 2;
    const auto found = train({.family = "user", .options = options, .steps = 12});
    check_same(found.losses, expected.losses);
    check_same(found.norms, expected.norms, 1e-4);
  }
}

TEST_CASE("replicas of sharded parts follow one rank") {
  if (State().num_processes() != 4) return;
  const auto expected = train_alone({.family = "user", .steps = 10});
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    auto options = arranged(2, stage);
    options.zero.shard_group = 1;
    check_same(train({.family = "user", .options = options, .steps = 10}).losses, expected.losses);
  }
}

TEST_CASE("two replicas of two shards of two parts follow one rank, and their checkpoint is that of one rank",
          "[.replicas]") {
  const State state;
  REQUIRE(state.num_processes() == 8);
  const test::Folder folder(state, "zero_tensor_replicas");
  const auto expected = train_alone({.family = "user", .steps = 10, .save = folder.path() / "alone"});
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    auto options = arranged(2, stage);
    options.zero.shard_group = 2;
    check_same(train({.family = "user", .options = options, .steps = 10}).losses, expected.losses);
    const auto again = folder.path() / std::to_string(stage);
    train({.family = "user", .options = options, .steps = 0, .load = folder.path() / "alone", .save = again});
    test::check_equal(test::tensors_in(again), test::tensors_in(folder.path() / "alone"));
  }
}

TEST_CASE("offloaded moments and parameters of a divided model follow one rank") {
  const State state;
  if (state.num_processes() != 4) return;
  const test::Folder folder(state, "zero_tensor_offload");
  const auto expected = train_alone({.family = "user", .steps = 5});
  auto options = arranged(2, 3);
  options.zero.offload_optimizer = folder.path() / "moments";
  options.zero.offload_parameters = folder.path() / "parameters";
  check_same(train({.family = "user", .options = options, .steps = 5}).losses, expected.losses);
}

TEST_CASE("fp16 with a scaler trains sharded parts, and an overflow in one rank's part skips the step on all") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const int tensor : {2, 4}) {
      if (State().num_processes() % tensor != 0) continue;
      auto options = arranged(tensor, stage);
      INFO(text_of(options));
      options.mixed_precision = Precision::fp16;
      options.grad_scaler = {.init_scale = 64};
      Accelerator accelerator(options);
      auto net = test::user_transformer();
      torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
      auto [model, optimizer] = accelerator.prepare(*net, adam);
      const auto& training = accelerator::Training::of(accelerator);
      const auto& data = training.data();
      for (int step = 0; step < 3; ++step) {
        const auto loss = test::user_loss(model, test::TokenRows(step, data.index(), data.size()));
        accelerator.backward(loss);
        if (step == 1 && accelerator.is_last_process()) {
          const auto holders = training.prepared.gradient_holders(net->parameters());
          const auto& of_parts = stage < 2 ? holders.parts : holders.shards_of_parts;
          const auto mine =
              std::ranges::find_if(of_parts, [](const at::Tensor& holder) { return holder.grad().numel() > 0; });
          REQUIRE(mine != of_parts.end());
          mine->grad().flatten()[0].fill_(INFINITY);
        }
        optimizer.step();
        optimizer.zero_grad();
        INFO("step " << step);
        CHECK(accelerator.optimizer_step_was_skipped() == (step == 1));
      }
    }
  }
}

TEST_CASE("a module and its optimizer go through free_memory from any arrangement to any other") {
  const auto expected = train_alone({.family = "user", .steps = 6});
  auto all = arrangements();
  all.insert(all.end(), {arranged(1, 0), arranged(2, 0)});
  if (State().num_processes() == 4) all.push_back(arranged(4, 0));
  for (const auto& from : all) {
    for (const auto& to : all) {
      INFO(text_of(from) << " to " << text_of(to));
      auto net = test::user_transformer();
      torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
      std::vector<double> losses;
      for (int half = 0; half < 2; ++half) {
        Accelerator accelerator(half == 0 ? from : to);
        auto [model, optimizer] = accelerator.prepare(*net, adam);
        const auto& data = accelerator::Training::of(accelerator).data();
        for (int step = 3 * half; step < 3 * half + 3; ++step) {
          const auto loss = test::user_loss(model, test::TokenRows(step % 5, data.index(), data.size()));
          accelerator.backward(loss);
          accelerator.clip_grad_norm_(model.parameters(), 1.0);
          optimizer.step();
          optimizer.zero_grad();
          losses.push_back(accelerator.reduce(loss, Reduce::mean).item<double>());
        }
        accelerator.free_memory();
      }
      check_same(losses, expected.losses);
    }
  }
}

TEST_CASE("moments from before are whole again after free_memory, also if no step was made in between") {
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    auto net = test::user_transformer();
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    test::user_loss(*net, test::TokenRows(0, 0, 1)).backward();
    adam.step();
    std::vector<at::Tensor> expected;
    const auto moments_of = [&](const at::Tensor& parameter) {
      return static_cast<torch::optim::AdamWParamState&>(*adam.state().at(parameter.unsafeGetTensorImpl())).exp_avg();
    };
    for (const auto& parameter : net->parameters()) expected.push_back(moments_of(parameter).clone());
    Accelerator accelerator(options);
    auto [model, optimizer] = accelerator.prepare(*net, adam);
    accelerator.free_memory();
    const auto parameters = net->parameters();
    REQUIRE(adam.state().size() == parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) CHECK(at::equal(moments_of(parameters[i]), expected[i]));
  }
}

TEST_CASE("a second model and optimizer are prepared after the first optimizer was destroyed") {
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    Accelerator accelerator(options);
    auto first = test::user_transformer(), second = test::user_transformer();
    {
      auto gone = std::make_unique<torch::optim::AdamW>(first->parameters(), torch::optim::AdamWOptions(1e-3));
      auto [model, optimizer] = accelerator.prepare(*first, *gone);
      accelerator.backward(test::user_loss(model, test::TokenRows(0, 0, 1)));
      optimizer.step();
    }
    torch::optim::AdamW adam(second->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(*second, adam);
    accelerator.backward(test::user_loss(model, test::TokenRows(0, 0, 1)));
    optimizer.step();
    CHECK_NOTHROW(accelerator.free_memory());
    CHECK(adam.state().size() == second->parameters().size());
  }
}

TEST_CASE("without free_memory an optimizer forgets what it knows of parts; one that is destroyed is left alone") {
  auto net = test::user_transformer();
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  const auto step = [&](const AcceleratorOptions& options, torch::optim::Optimizer& plain, bool frees) {
    Accelerator accelerator(options);
    auto [model, optimizer] = accelerator.prepare(*net, plain);
    const auto& data = accelerator::Training::of(accelerator).data();
    accelerator.backward(test::user_loss(model, test::TokenRows(0, data.index(), data.size())));
    optimizer.step();
    optimizer.zero_grad();
    if (frees) accelerator.free_memory();
  };
  step(arranged(2, 0), adam, false);
  CHECK(adam.state().count(net->named_parameters()["up0.weight"].unsafeGetTensorImpl()) == 0);
  CHECK_NOTHROW(step({}, adam, true));
  CHECK(adam.state().count(net->named_parameters()["up0.weight"].unsafeGetTensorImpl()) == 1);
  for (const auto& options : {arranged(2, 0), arranged(2, 2)}) {
    Accelerator accelerator(options);
    {
      torch::optim::AdamW gone(net->parameters(), torch::optim::AdamWOptions(1e-3));
      auto [model, optimizer] = accelerator.prepare(*net, gone);
      accelerator.backward(test::user_loss(model, test::TokenRows(0, 0, 1)));
      optimizer.step();
    }
    CHECK_NOTHROW(accelerator.free_memory());
    CHECK(net->named_parameters()["up0.weight"].sizes() ==
          test::user_transformer()->named_parameters()["up0.weight"].sizes());
  }
}

TEST_CASE("exports and summoned parameters of sharded parts are whole, and changes of them are kept") {
  const State state;
  const test::Folder folder(state, "zero_tensor_export");
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    Accelerator accelerator(options);
    auto net = test::tensor_model("llama"), whole = test::tensor_model("llama");
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(*net, adam);
    const auto parameters = whole->named_parameters();
    const auto dict = accelerator.get_state_dict(model);
    for (const auto& item : parameters) {
      if (accelerator.is_main_process()) CHECK(at::equal(dict.get<at::Tensor>(item.key()), item.value()));
    }
    {
      const at::NoGradGuard no_grad;
      const auto summoned = accelerator.summon_full_parameters(model);
      for (const auto& item : net->named_parameters()) {
        CHECK(at::equal(item.value(), parameters[item.key()]));
        item.value().mul_(2);
      }
      accelerator.save_model(model, folder.path() / "within");
      const auto within = accelerator.get_state_dict(model);
      if (accelerator.is_main_process())
        CHECK(at::equal(within.get<at::Tensor>("lm_head.weight"), parameters["lm_head.weight"] * 2));
      CHECK(net->named_parameters()["lm_head.weight"].sizes() == parameters["lm_head.weight"].sizes());
    }
    accelerator.save_model(model, folder.path() / "after");
    for (const auto* name : {"within", "after"}) {
      auto loaded = test::tensor_model("llama");
      accelerator.load_checkpoint_in_model(*loaded, folder.path() / name);
      for (const auto& item : loaded->named_parameters()) CHECK(at::equal(item.value(), parameters[item.key()] * 2));
    }
    {
      const auto summoned = accelerator.summon_full_parameters(model, {.writeback = false});
      const at::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.zero_();
    }
    const auto before = test::token_loss(model, test::TokenRows(0, 0, 1)).item<double>();
    accelerator.load_checkpoint_in_model(model, folder.path() / "after");
    CHECK(test::token_loss(model, test::TokenRows(0, 0, 1)).item<double>() == before);
  }
}
