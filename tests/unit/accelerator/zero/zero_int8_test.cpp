// Gathers of stage 3 over two nodes in int8 blocks.
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "parallel/zero/int8_blocks.hpp"
#include "support/written.hpp"
#include "unit/accelerator/zero/two_nodes.hpp"

using namespace hortator;
using test::are_equal;
using test::back_ends;
using test::batch;
using test::copies_of;
using test::Shardable;
using test::use_communicator;

namespace {

struct Int8Plan {
  ZeroConfig zero = {};
  at::ScalarType type = at::kFloat;
  Precision precision = Precision::no;
  bool looks = false;  ///< reads exact values in the middle of the training
  int steps = 6;
};

struct Int8Outcome {
  std::vector<double> losses = {};
  std::vector<at::Tensor> used = {};  ///< the parameters, as operators see them
  std::vector<at::Tensor> kept = {};  ///< the same, as they are kept
  bool are_same_on_all = true;        ///< whether all ranks have used the same ones
};

/// Whether the tensor is the same on all ranks, bit by bit.
bool is_same_on_all(Accelerator& accelerator, const at::Tensor& tensor) {
  const auto all = accelerator.gather(tensor.unsqueeze(0));
  return at::equal(all, tensor.unsqueeze(0).expand_as(all));
}

/// The state dictionary of a model is the same as its summoned parameters, where this rank has one.
void check_state(const StateDict& state, const torch::nn::Module& module, const std::vector<at::Tensor>& kept) {
  if (state.empty()) return;
  std::size_t i = 0;
  for (const auto& item : module.named_parameters()) CHECK(at::equal(state.get<at::Tensor>(item.key()), kept[i++]));
}

Int8Outcome train(const Int8Plan& plan) {
  Accelerator accelerator({.mixed_precision = plan.precision, .ddp = {.bucket_cap_mb = 3e-3}, .zero = plan.zero});
  Shardable net(plan.type);
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  Int8Outcome outcome;
  const auto look = [&, &prepared = model] {
    const auto state = accelerator.get_state_dict(prepared);
    const auto summoned = accelerator.summon_full_parameters(prepared);
    outcome.kept = copies_of(*net);
    check_state(state, *net, outcome.kept);
  };
  if (plan.looks) look();
  for (int step = 0; step < plan.steps; ++step) {
    const auto y = model(batch(accelerator, step % 5, plan.type));
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    if (plan.looks && step % 3 == 0) check_state(accelerator.get_state_dict(model), *net, outcome.kept);
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (plan.looks) look();
  }
  outcome.used = copies_of(*net);
  for (const auto& one : outcome.used) outcome.are_same_on_all &= is_same_on_all(accelerator, one);
  look();
  accelerator.wait_for_everyone();
  return outcome;
}

/// What operators see of a parameter, whatever its neighbours and the number of ranks.
at::Tensor rounded(const at::Tensor& parameter) {
  if (parameter.dim() < 2) return parameter;
  const auto values = parameter.flatten();
  const auto blocks = (values.numel() + parallel::int8_block_values - 1) / parallel::int8_block_values;
  auto padded = at::zeros({blocks * parallel::int8_block_values}, values.options());
  padded.narrow(0, 0, values.numel()).copy_(values);
  parallel::unpack_int8(parallel::pack_int8(padded), padded);
  return padded.narrow(0, 0, values.numel()).view(parameter.sizes());
}

/// Initial weights of a linear model, in the order in which they were made.
torch::nn::Sequential linear_layers(int layers, int width) {
  at::manual_seed(3);
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i)
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

std::int64_t bytes_of_forward(bool is_int8) {
  Accelerator accelerator({.zero = {.stage = 3, .resident_bytes = 1, .int8_gathers = is_int8}});
  auto net = linear_layers(4, 256);
  auto model = accelerator.prepare(net);
  const auto input = at::ones({2, 256});
  model(input);
  const auto before = scale::traffic().bytes;
  model(input);
  const auto bytes = scale::traffic().bytes - before;
  accelerator.wait_for_everyone();
  return bytes;
}

}  // namespace

TEST_CASE("over nodes, with int8 gathers all ranks compute with the same rounded matrices, and keep exact ones") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      INFO(communicator << ", " << c10::toString(type));
      const auto outcome = train({.zero = {.stage = 3, .int8_gathers = true}, .type = type});
      CHECK(outcome.are_same_on_all);
      REQUIRE(outcome.used.size() == outcome.kept.size());
      for (std::size_t i = 0; i < outcome.kept.size(); ++i) {
        INFO("parameter " << i);
        CHECK(at::equal(outcome.used[i], rounded(outcome.kept[i])));
        CHECK(at::equal(outcome.used[i], outcome.kept[i]) == (outcome.kept[i].dim() < 2));
      }
    }
  }
}

// A matrix's values are off by 1/254 of the largest in their block at most, by 0.6 % of their mean size on average. The
// errors of a product's terms are independent, so that each of the four layers adds about that much to its result, and
// the loss, a square, changes by about 2 * sqrt(4) * 0.6 % = 2.4 % of its first value. Twice that is allowed.
TEST_CASE("over nodes, a training with int8 gathers follows the losses of one without") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    for (const auto precision : {Precision::no, Precision::bf16}) {
      INFO(communicator << ", mixed precision: " << (precision == Precision::no ? "no" : "bf16"));
      const auto whole = train({.zero = {.stage = 3}, .precision = precision, .steps = 30}).losses;
      const auto int8 = train({.zero = {.stage = 3, .int8_gathers = true}, .precision = precision, .steps = 30}).losses;
      CHECK(int8 != whole);
      for (std::size_t step = 0; step < whole.size(); ++step) {
        INFO("step " << step << ": " << int8[step] << ", without: " << whole[step] << ", first: " << whole[0]);
        CHECK(std::abs(int8[step] - whole[step]) < 0.048 * whole[0]);
      }
      CHECK(int8.back() < 0.25 * int8.front());
    }
  }
}

TEST_CASE("over nodes, int8 gathers train the same whatever is resident, gathered ahead, on disk or looked at") {
  use_communicator("node");
  const test::Folder folder(State(), "zero_int8_disk");
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    const auto expected = train({.zero = {.stage = 3, .int8_gathers = true}});
    const auto check = [&](const Int8Plan& plan) {
      const auto outcome = train(plan);
      CHECK(outcome.losses == expected.losses);
      CHECK(are_equal(outcome.kept, expected.kept));
      CHECK(are_equal(outcome.used, expected.used));
    };
    for (const std::uint64_t resident : {1, 24 << 10, 1 << 20}) {
      INFO(communicator << ", resident bytes: " << resident);
      check({.zero = {.stage = 3, .resident_bytes = resident, .int8_gathers = true}});
      check({.zero = {.stage = 3, .resident_bytes = resident, .int8_gathers = true}, .looks = true});
    }
    INFO(communicator);
    setenv("HORTATOR_GATHER_AHEAD", "0", 1);
    check({.zero = {.stage = 3, .int8_gathers = true}});
    unsetenv("HORTATOR_GATHER_AHEAD");
    check({.zero = {.stage = 3, .offload_parameters = folder.path(), .int8_gathers = true}});
  }
}

TEST_CASE("over nodes, checkpoints, a step without gradients and free_memory keep weights exact with int8 gathers") {
  use_communicator("node");
  const test::Folder folder(State(), "zero_int8_exact");
  auto net = linear_layers(3, 24);
  const auto initial = copies_of(*net);
  const ProjectOptions project{.dir = folder.path(), .automatic_checkpoint_naming = true};
  {
    Accelerator accelerator({.zero = {.stage = 3, .int8_gathers = true}, .project = project});
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    for (int step = 0; step < 3; ++step) {
      accelerator.backward(model(at::ones({2, 24})).sum() * 0);
      optimizer.step();
    }
    CHECK(!are_equal(copies_of(*net), initial));
    accelerator.save_state();
    { const auto summoned = accelerator.summon_full_parameters(model); }  // what it writes back is what was there
    accelerator.free_memory();
    CHECK(are_equal(copies_of(*net), initial));
  }
  auto other = linear_layers(3, 24);
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : other->parameters()) parameter.mul_(2);
  }
  Accelerator accelerator({.zero = {.stage = 0}, .project = project});
  torch::optim::SGD sgd(other->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(other, sgd);
  accelerator.load_state();
  CHECK(are_equal(copies_of(*other), initial));
  accelerator.wait_for_everyone();
}

TEST_CASE("over nodes, int8 gathers carry 68 of fp32's 256 bytes") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    const auto whole = static_cast<double>(bytes_of_forward(false));
    const auto int8 = static_cast<double>(bytes_of_forward(true));
    CHECK(int8 >= whole * 68 / 256);
    CHECK(int8 < 1.02 * whole * 68 / 256);
  }
}

TEST_CASE(
    "int8 gathers are refused below stage 3 and for matrices of other types, and named where nothing is gathered") {
  use_communicator("node");
  CHECK_THROWS_WITH(Accelerator({.zero = {.stage = 2, .int8_gathers = true}}),
                    ContainsSubstring("zero.int8_gathers is set at stage 2"));
  CHECK_THROWS_WITH(Accelerator({.zero = {.int8_gathers = true}}), ContainsSubstring("set at stage 0"));
  {
    Accelerator accelerator({.zero = {.stage = 3, .int8_gathers = true}});
    Shardable net(at::kDouble);
    CHECK_THROWS_WITH(accelerator.prepare(net), ContainsSubstring("'first.weight' cannot be gathered in int8") &&
                                                    ContainsSubstring("zero.keep_resident"));
  }
  {
    Accelerator accelerator(
        {.zero = {.stage = 3, .keep_resident = {"first", "second", "detour", "frozen"}, .int8_gathers = true}});
    Shardable net(at::kDouble);
    auto model = accelerator.prepare(net);
    CHECK(model(batch(accelerator, 0, at::kDouble)).scalar_type() == at::kDouble);
    accelerator.wait_for_everyone();
  }
  const auto lines = test::written_to(STDERR_FILENO, [] {
    Accelerator accelerator({.zero = {.stage = 3, .shard_group = 1, .int8_gathers = true}});
    accelerator.wait_for_everyone();
  });
  const bool is_first = State().is_main_process();
  CHECK((lines.find("zero.int8_gathers has no effect in this run") != std::string::npos) == is_first);
  const auto gathering = test::written_to(STDERR_FILENO, [] {
    Accelerator accelerator({.zero = {.stage = 3, .int8_gathers = true}});
    accelerator.wait_for_everyone();
  });
  CHECK(gathering.find("no effect") == std::string::npos);
}
