// Steps of models that are divided among ranks: with an optimizer of the user's own, several models, several
// optimizers and hooks, against one rank.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/softmax.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <hortator/training/named_optimizer.hpp>
#include <vector>

#include "divided_run.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::data_of;
using test::DividedByExperts;
using test::DividedByTensor;
using test::DividedRun;
using test::on_first;

namespace {

/// A user's optimizer with a moment and a number of its own.
class Damped final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit Damped(std::vector<at::Tensor> parameters)
      : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                       NamedOptions({{"lr", 0.02}}, {"momentum"}, {"rate"})) {}

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override {
    auto& momentum = state.moments["momentum"].lerp_(gradient, 0.3);
    state.scalars["rate"] = options.get_lr() / static_cast<double>(state.step);
    parameter.sub_(momentum / (momentum.abs() + 0.01), state.scalars["rate"]);
  }
};

struct MakeDamped {
  auto operator()(const std::vector<at::Tensor>& parameters) const { return std::make_unique<Damped>(parameters); }
};

std::filesystem::path checkpoint_of(const AcceleratorOptions& options, const std::filesystem::path& folder) {
  return folder / (options.communicator ? "alone" : "divided");
}

std::filesystem::path checkpoint_of_other(const AcceleratorOptions& options, const std::filesystem::path& folder) {
  return folder / (options.communicator ? "divided" : "alone");
}

/// Runs two halves of a training on one rank and on two: the second half loads what the other arrangement has saved.
template <typename Division, typename Half>
void check_halves(const std::string& name, const Half& half) {
  const State state;
  const test::Folder folder(state, name);
  for (const int first : {0, 2}) {
    const auto scenario = [&](const AcceleratorOptions& options) {
      return half(options, first, checkpoint_of(options, folder.path()), checkpoint_of_other(options, folder.path()));
    };
    const auto expected = on_first(1, scenario);
    check_near(scenario(Division::on_two({})), expected);
  }
}

template <typename Division>
void check_own_optimizer(const std::string& name) {
  check_halves<Division>(name, [](const auto& options, int first, const auto& save, const auto& load) {
    DividedRun<Division, MakeDamped> run(options);
    if (first > 0) run.accelerator.load_state(load);
    std::vector<double> numbers;
    run.steps(numbers, first, 2);
    if (first == 0) run.accelerator.save_state(save);
    append_weights(numbers, run.accelerator, run.model);
    return numbers;
  });
}

/// The user's own optimizer makes the second step, and not the first.
template <typename Division, typename Make>
void check_past_handle() {
  const auto scenario = [](const AcceleratorOptions& options) {
    DividedRun<Division, Make> run(options);
    std::vector<double> numbers = {run.step(0)};
    run.accelerator.backward(run.loss(1));
    run.plain->step();
    run.optimizer.zero_grad();
    run.steps(numbers, 2, 2);
    append_weights(numbers, run.accelerator, run.model);
    return numbers;
  };
  const auto expected = on_first(1, scenario);
  check_near(scenario(Division::on_two({})), expected);
  DividedRun<Division, Make> run(Division::on_two({}));
  run.accelerator.backward(run.loss(0));
  CHECK_THROWS_WITH(run.plain->step(), ContainsSubstring("moments that an optimizer makes past its handle"));
  run.accelerator.wait_for_everyone();
}

/// Whether one optimizer of two steps it.
bool is_of_first(const std::string& name) {
  const bool is_bias = name.ends_with("bias");
  return name.find("norm") == std::string::npos &&
         !(is_bias && (name.starts_with("out") || name.starts_with("down"))) &&
         (name.find('.') == name.rfind('.') ? name.find("head") == std::string::npos
                                            : name.find("experts") != std::string::npos);
}

template <typename Division>
void check_several_optimizers(const std::string& name) {
  check_halves<Division>(name, [](const auto& options, int first, const auto& save, const auto& load) {
    Accelerator accelerator(options);
    const auto net = Division::make();
    std::vector<at::Tensor> divided, others;
    for (const auto& item : net->named_parameters())
      (is_of_first(item.key()) ? divided : others).push_back(item.value());
    torch::optim::AdamW adam(divided, test::smooth_adamw());
    torch::optim::SGD sgd(others, torch::optim::SGDOptions(0.05).momentum(0.9));
    auto [model, of_divided, of_others] = accelerator.prepare(*net, adam, sgd);
    if (first > 0) accelerator.load_state(load);
    const auto& data = data_of(accelerator);
    std::vector<double> numbers;
    for (int step = first; step < first + 2; ++step) {
      const auto loss = Division::loss_of(Division::logits(model, step, data), step, data);
      accelerator.backward(loss);
      numbers.push_back(accelerator.clip_grad_norm_(divided, 0.1).template item<double>());
      numbers.push_back(accelerator.clip_grad_norm_(others, 0.1).template item<double>());
      of_divided.step();
      if (step % 2 == 1) of_others.step();
      of_divided.zero_grad();
      if (step % 2 == 1) of_others.zero_grad();
      numbers.push_back(accelerator.reduce(loss.detach(), Reduce::mean).template item<double>());
    }
    if (first == 0) accelerator.save_state(save);
    append_weights(numbers, accelerator, model);
    return numbers;
  });
}

/// Two models learn from each other's scores, in a common backward pass and in turns.
template <typename Division>
std::vector<double> train_two(const AcceleratorOptions& options) {
  Accelerator accelerator(options);
  const auto net = Division::make(), other = Division::make();
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : other->parameters()) parameter.mul_(1.2);
  }
  torch::optim::AdamW adam(net->parameters(), test::smooth_adamw());
  torch::optim::SGD sgd(other->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  auto [model, partner, optimizer, of_partner] = accelerator.prepare(*net, *other, adam, sgd);
  const auto& data = data_of(accelerator);
  std::vector<double> numbers;
  for (int step = 0; step < 5; ++step) {
    const auto mine = Division::logits(model, step, data), others = Division::logits(partner, step, data);
    const auto of_mine = Division::loss_of(mine, step, data) + at::mse_loss(mine, others.detach());
    const auto of_others = Division::loss_of(others, step, data) + at::mse_loss(others, mine.detach());
    switch (step) {
      case 2:
        accelerator.backward(of_mine);
        break;
      case 3:
        accelerator.backward(of_others);
        break;
      case 4:
        accelerator.backward(Division::loss_of(mine * others, step, data));
        break;
      default:
        accelerator.backward(of_mine + of_others);
    }
    if (step != 3) optimizer.step();
    if (step != 2) of_partner.step();
    optimizer.zero_grad();
    of_partner.zero_grad();
    for (const auto& loss : {of_mine, of_others})
      numbers.push_back(accelerator.reduce(loss.detach(), Reduce::mean).template item<double>());
  }
  append_weights(numbers, accelerator, model);
  append_weights(numbers, accelerator, partner);
  return numbers;
}

/// Hooks that scale weights, read results, and replace them.
std::vector<double> train_hooked(const AcceleratorOptions& options) {
  DividedRun<DividedByTensor> run(options);
  std::vector<double> numbers;
  run.model.add_hook({.before_forward =
                          [](torch::nn::Module& module) {
                            const at::NoGradGuard no_grad;
                            for (auto& parameter : module.parameters()) parameter.mul_(0.99);
                          },
                      .after_forward =
                          [&](torch::nn::Module& module, std::vector<at::Tensor>& results) {
                            auto& logits = results.at(0);
                            const auto read = logits.detach();
                            numbers.push_back(read.max().item<double>());
                            numbers.push_back(read.square().mean().item<double>());
                            numbers.push_back(read.argmax(-1).sum().item<double>());
                            numbers.push_back(read[0][1][37].item<double>());
                            numbers.push_back(module.parameters().front().detach().abs().sum().item<double>());
                            logits = at::clamp(logits, -3, 3) * at::softmax(read, -1).mul(4) + 0.1 * logits;
                          }});
  run.steps(numbers, 0, 4);
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

}  // namespace

TEST_CASE("a user's own optimizer steps and saves the parts of tensor ranks as it does whole parameters") {
  check_own_optimizer<DividedByTensor>("pairs_own_tensor");
}

TEST_CASE("a user's own optimizer steps and saves divided experts as it does whole ones") {
  check_own_optimizer<DividedByExperts>("pairs_own_experts");
}

TEST_CASE("a step past the handle steps the parts of tensor ranks as on one rank, and cannot be the first") {
  check_past_handle<DividedByTensor, MakeDamped>();
  check_past_handle<DividedByTensor, test::MakeAdamW>();
}

TEST_CASE("a step past the handle steps divided experts as on one rank, and cannot be the first") {
  check_past_handle<DividedByExperts, MakeDamped>();
  check_past_handle<DividedByExperts, test::MakeAdamW>();
}

TEST_CASE("one optimizer for divided parameters and one for all else step, clip and save as on one rank") {
  check_several_optimizers<DividedByTensor>("pairs_several_tensor");
}

TEST_CASE("one optimizer for divided experts and one for all else step, clip and save as on one rank") {
  check_several_optimizers<DividedByExperts>("pairs_several_experts");
}

TEST_CASE("two models that are divided among tensor ranks learn from each other as on one rank") {
  const auto expected = on_first(1, train_two<DividedByTensor>);
  check_near(train_two<DividedByTensor>(DividedByTensor::on_two({})), expected);
}

TEST_CASE("two models with divided experts learn from each other as on one rank") {
  const auto expected = on_first(1, train_two<DividedByExperts>);
  check_near(train_two<DividedByExperts>(DividedByExperts::on_two({})), expected);
}

TEST_CASE("hooks read and replace divided results, and scale divided parameters, as on one rank") {
  const auto expected = on_first(1, train_hooked);
  check_near(train_hooked(DividedByTensor::on_two({})), expected);
}
