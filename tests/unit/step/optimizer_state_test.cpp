#include "step/moments/optimizer_state.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using torch::optim::Optimizer;

namespace {

struct Setup {
  torch::nn::Linear model{3, 2};
  std::unique_ptr<Optimizer> optimizer;
  step::ParameterNames names;
};

using Make = std::function<std::unique_ptr<Optimizer>(std::vector<at::Tensor>)>;

Setup make_setup(const Make& make) {
  at::manual_seed(3);
  Setup setup;
  setup.optimizer = make(setup.model->parameters());
  for (const auto& item : setup.model->named_parameters()) {
    setup.names[item.value().unsafeGetTensorImpl()] = item.key();
  }
  return setup;
}

void train_steps(Setup& setup, int steps) {
  for (int step = 0; step < steps; ++step) {
    setup.optimizer->zero_grad();
    const auto closure = [&] {
      setup.optimizer->zero_grad();
      auto loss = setup.model->forward(at::arange(6.0).view({2, 3})).pow(2).sum();
      loss.backward();
      return loss;
    };
    closure();
    setup.optimizer->step(closure);
  }
}

void copy_parameters(const Setup& from, const Setup& to) {
  const at::NoGradGuard no_grad;
  const auto sources = from.model->parameters();
  const auto targets = to.model->parameters();
  for (std::size_t i = 0; i < sources.size(); ++i) targets[i].copy_(sources[i]);
}

// A user's optimizer: gradient descent whose rate falls with its step count.
struct OwnOptions : torch::optim::OptimizerCloneableOptions<OwnOptions> {
  double lr = 0.01;
  double get_lr() const override { return lr; }
  void set_lr(const double value) override { lr = value; }
};
class OwnOptimizer : public Optimizer {
 public:
  explicit OwnOptimizer(std::vector<at::Tensor> parameters)
      : Optimizer(std::move(parameters), std::make_unique<OwnOptions>()) {}
  at::Tensor step(LossClosure /*closure*/ = nullptr) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (auto& parameter : param_groups()[0].params()) {
      parameter.sub_(parameter.grad(), param_groups()[0].options().get_lr() / static_cast<double>(steps_));
    }
    return {};
  }
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("steps", at::scalar_tensor(steps_, at::kLong));
    archive.write("lr", at::scalar_tensor(param_groups()[0].options().get_lr(), at::kDouble));
  }
  void load(torch::serialize::InputArchive& archive) override {
    at::Tensor steps;
    at::Tensor lr;
    archive.read("steps", steps);
    archive.read("lr", lr);
    steps_ = steps.item<std::int64_t>();
    param_groups()[0].options().set_lr(lr.item<double>());
  }

 private:
  std::int64_t steps_ = 0;
};

const std::map<std::string, Make> makers = {
    {"an own optimizer", [](auto p) { return std::make_unique<OwnOptimizer>(p); }},
    {"AdamW",
     [](auto p) { return std::make_unique<torch::optim::AdamW>(p, torch::optim::AdamWOptions(1e-2).amsgrad(true)); }},
    {"Adam", [](auto p) { return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(1e-2)); }},
    {"SGD",
     [](auto p) { return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(1e-3).momentum(0.9)); }},
    {"RMSprop",
     [](auto p) {
       return std::make_unique<torch::optim::RMSprop>(p,
                                                      torch::optim::RMSpropOptions(1e-3).momentum(0.9).centered(true));
     }},
    {"Adagrad", [](auto p) { return std::make_unique<torch::optim::Adagrad>(p, torch::optim::AdagradOptions(1e-2)); }},
    {"LBFGS",
     [](auto p) { return std::make_unique<torch::optim::LBFGS>(p, torch::optim::LBFGSOptions(1e-2).max_iter(2)); }},
};

}  // namespace

TEST_CASE("a restored optimizer continues bit for bit") {
  for (const auto& [name, make] : makers) {
    INFO(name);
    auto original = make_setup(make);
    train_steps(original, 3);
    const auto state = step::save_optimizer(*original.optimizer, original.names);

    auto restored = make_setup(make);
    restored.optimizer->param_groups()[0].options().set_lr(99);
    copy_parameters(original, restored);
    step::load_optimizer(*restored.optimizer, restored.names, state);
    CHECK(restored.optimizer->param_groups()[0].options().get_lr() ==
          original.optimizer->param_groups()[0].options().get_lr());

    train_steps(original, 3);
    train_steps(restored, 3);
    CHECK(at::equal(original.model->weight, restored.model->weight));
    CHECK(at::equal(original.model->bias, restored.model->bias));
  }
}

TEST_CASE("moments are named after their parameters") {
  auto setup = make_setup(makers.at("AdamW"));
  CHECK(step::save_optimizer(*setup.optimizer, setup.names).contains("groups/0/beta2"));
  train_steps(setup, 1);
  const auto state = step::save_optimizer(*setup.optimizer, setup.names);
  CHECK(state.get<at::Tensor>("state/weight/exp_avg").sizes() == at::IntArrayRef{2, 3});
  CHECK(state.get<std::int64_t>("state/bias/step") == 1);
}

TEST_CASE("a state that does not fit throws and changes nothing") {
  auto adam = make_setup(makers.at("AdamW"));
  auto own = make_setup(makers.at("an own optimizer"));
  auto sgd = make_setup(makers.at("SGD"));
  train_steps(adam, 1);
  train_steps(sgd, 1);
  const auto state = step::save_optimizer(*adam.optimizer, adam.names);
  CHECK_THROWS_WITH(step::load_optimizer(*own.optimizer, own.names, state),
                    ContainsSubstring("another type of optimizer"));
  CHECK_THROWS_AS(step::load_optimizer(*sgd.optimizer, sgd.names, state), Error);
  CHECK(sgd.optimizer->param_groups()[0].options().get_lr() == 1e-3);
  CHECK(sgd.optimizer->state().size() == 2);

  auto wider = Setup{.model = torch::nn::Linear(4, 2), .optimizer = nullptr, .names = {}};
  wider.optimizer = makers.at("AdamW")(wider.model->parameters());
  for (const auto& item : wider.model->named_parameters()) wider.names[item.value().unsafeGetTensorImpl()] = item.key();
  CHECK_THROWS_WITH(step::load_optimizer(*wider.optimizer, wider.names, state),
                    ContainsSubstring("state/weight/exp_avg has shape [2, 3], its parameter has [2, 4]"));
}

TEST_CASE("an optimizer that saves nothing is found, and can be saved and loaded") {
  struct Stateless : OwnOptimizer {
    using OwnOptimizer::OwnOptimizer;
    void save(torch::serialize::OutputArchive& /*archive*/) const override {}
    void load(torch::serialize::InputArchive& /*archive*/) override {}
  };
  const std::vector<at::Tensor> parameters = {at::ones({2}).requires_grad_()};
  Stateless stateless(parameters);
  CHECK(step::saves_nothing(stateless));
  CHECK_FALSE(step::saves_nothing(OwnOptimizer(parameters)));
  CHECK_FALSE(step::saves_nothing(torch::optim::SGD(parameters, 0.1)));
  CHECK_NOTHROW(step::load_optimizer(stateless, {}, step::save_optimizer(stateless, {})));
}
