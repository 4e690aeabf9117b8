// Exceptions on all ranks within a pass, and the passes after it.
#include <ATen/ops/mse_loss.h>

#include <stdexcept>
#include <vector>

#include "divided_run.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::DividedByTensor;
using test::DividedRun;
using test::on_first;

namespace {

enum class Failure { none, forward, backward };

/// Two layers, each divided by columns, then by rows; may fail between the two, where ranks have parts.
struct FailingNet : torch::nn::Module, HasTensorPlan {
  at::Tensor operator()(at::Tensor x) {
    for (std::size_t i = 0; i < up.size(); ++i) {
      auto hidden = up[i](x);
      if (i == 1 && failure == Failure::forward) throw std::runtime_error("within forward");
      if (i == 0 && failure == Failure::backward)
        hidden.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("within backward"); });
      x = x + down[i](at::gelu(hidden));
    }
    return x;
  }
  at::Tensor forward(const at::Tensor& x) { return (*this)(x); }
  TensorPlan tensor_plan() const override {
    return {{"up*", TensorDivision::columns}, {"down*", TensorDivision::rows}};
  }
  torch::nn::Linear layer(const std::string& name, std::int64_t from, std::int64_t to) {
    return register_module(name, torch::nn::Linear(from, to));
  }
  std::vector<torch::nn::Linear> up = {layer("up0", 8, 16), layer("up1", 8, 16)};
  std::vector<torch::nn::Linear> down = {layer("down0", 16, 8), layer("down1", 16, 8)};
  Failure failure = Failure::none;
};

struct DividedFailing {
  using Net = FailingNet;
  static std::shared_ptr<Net> make() {
    torch::manual_seed(3);
    return std::make_shared<Net>();
  }
  static at::Tensor batch(std::int64_t step, const parallel::RankGroup& data) {
    return at::sin(at::arange(64, at::kFloat) * (0.3 + static_cast<double>(step)) + 1)
        .view({8, 8})
        .chunk(data.size())[static_cast<std::size_t>(data.index())];
  }
  template <typename Model>
  static at::Tensor logits(Model& model, std::int64_t step, const parallel::RankGroup& data) {
    return model(batch(step, data));
  }
  static at::Tensor loss_of(const at::Tensor& logits, std::int64_t step, const parallel::RankGroup& data) {
    return at::mse_loss(logits, batch(step + 1, data));
  }
};

struct Interruption {
  bool is_plain = false;    ///< loss.backward() instead of accelerator.backward()
  bool set_to_none = true;  ///< of zero_grad()
  int first_steps = 2;      ///< before each exception
};

std::vector<double> train_interrupted(const AcceleratorOptions& options, const Interruption& how = {}) {
  DividedRun<DividedFailing> run(options);
  std::vector<double> numbers;
  const auto backward = [&](std::int64_t step) {
    const auto loss = run.loss(step);
    how.is_plain ? loss.backward() : run.accelerator.backward(loss);
    return loss;
  };
  const auto steps = [&](std::int64_t first, std::int64_t count) {
    for (auto step = first; step < first + count; ++step) {
      numbers.push_back(run.mean(backward(step)));
      run.optimizer.step();
      run.optimizer.zero_grad(how.set_to_none);
    }
  };
  for (const auto failure : {Failure::forward, Failure::backward}) {
    steps(0, how.first_steps);
    run.net->failure = failure;
    CHECK_THROWS_WITH(backward(2), ContainsSubstring(failure == Failure::forward ? "in forward" : "in backward"));
    run.net->failure = Failure::none;
    run.optimizer.zero_grad(how.set_to_none);
  }
  steps(3, 2);
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

}  // namespace

TEST_CASE("an exception where tensor ranks have parts, in forward or backward, leaves the next steps right") {
  const auto scenario = [](const auto& options) { return train_interrupted(options); };
  const auto expected = on_first(1, scenario);
  check_near(scenario(DividedByTensor::on_two({})), expected);
}

TEST_CASE("gradients of a pass that an exception has interrupted are in no later average") {
  for (const auto& how : {Interruption(), Interruption{.set_to_none = false}, Interruption{.is_plain = true},
                          Interruption{.first_steps = 0}}) {
    const auto scenario = [&](const AcceleratorOptions& options) { return train_interrupted(options, how); };
    const auto expected = on_first(1, scenario);
    for (const int stage : {0, 1, 2, 3}) {
      for (const double bucket_cap_mb : {25.0, 1e-9}) {  // one bucket, which was not sent, and many, which were
        INFO("stage " << stage << ", buckets of " << bucket_cap_mb << " MB, plain " << how.is_plain << ", set to none "
                      << how.set_to_none << ", after " << how.first_steps << " steps");
        check_near(scenario({.ddp = {.bucket_cap_mb = bucket_cap_mb}, .zero = {.stage = stage}}), expected);
      }
    }
  }
}
