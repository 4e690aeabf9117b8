#include "step/optimizer/fused_step.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <ATen/ATen.h>

#include "step/moments/optimizer_state.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

using namespace hortator;
using namespace torch::optim;
using step::StepKernel;

namespace {

using MakeFused = std::function<std::unique_ptr<Optimizer>(const std::vector<OptimizerParamGroup>&)>;

template <typename Optim, typename Options>
MakeFused make(const Options& defaults) {
  return [defaults](const auto& groups) { return std::make_unique<Optim>(groups, defaults); };
}

// Parameters of many shapes in two groups with different rates: a scalar, an empty one, images in channels-last order,
// and one that is one element longer than a vector register.
struct Trained {
  std::vector<at::Tensor> parameters;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<at::Tensor> gradients;

  Trained(const MakeFused& make_optimizer, at::ScalarType type) {
    at::manual_seed(1);
    const std::vector<std::vector<std::int64_t>> shapes = {{}, {0}, {33}, {7, 5}, {4, 3, 3, 3}, {1, 6}, {2000}};
    for (const auto& shape : shapes) {
      auto values = at::randn(shape, type);
      if (shape.size() == 4) values = values.contiguous(at::MemoryFormat::ChannelsLast);
      parameters.push_back(values.requires_grad_());
    }
    const auto middle = parameters.begin() + 3;
    optimizer = make_optimizer({OptimizerParamGroup(std::vector<at::Tensor>(parameters.begin(), middle)),
                                OptimizerParamGroup(std::vector<at::Tensor>(middle, parameters.end()))});
    optimizer->param_groups()[1].options().set_lr(0.5 * optimizer->param_groups()[1].options().get_lr());
  }

  // The third parameter has no gradient in the first steps, the fourth in some steps.
  void set_gradients(int step) {
    at::manual_seed(100 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto gradient = at::randn_like(parameters[i]);
      const bool none = (i == 2 && step < 3) || (i == 3 && step % 4 == 1);
      parameters[i].mutable_grad() = none ? at::Tensor() : gradient;
    }
  }
};

double largest_difference(const Trained& a, const Trained& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    if (a.parameters[i].numel() == 0) continue;
    const auto ours = a.parameters[i].detach().to(at::kDouble);
    const auto theirs = b.parameters[i].detach().to(at::kDouble);
    largest = hortator::test::larger(largest, ((ours - theirs).abs().max() / theirs.abs().max()).item<double>());
  }
  return largest;
}

step::ParameterNames names_of(const Trained& model) {
  step::ParameterNames names;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    names[model.parameters[i].unsafeGetTensorImpl()] = std::to_string(i);
  }
  return names;
}

const std::map<std::string, MakeFused> kinds = {
    {"AdamW", make<AdamW>(AdamWOptions(1e-2).weight_decay(0.1))},
    {"AdamW without decay", make<AdamW>(AdamWOptions(3e-3).weight_decay(0).betas({0.8, 0.99}).eps(1e-6))},
    {"Adam", make<Adam>(AdamOptions(1e-2).weight_decay(0.1))},
    {"Adam without decay", make<Adam>(AdamOptions(1e-2))},
    {"SGD", make<SGD>(SGDOptions(1e-2))},
    {"SGD, decay", make<SGD>(SGDOptions(1e-2).weight_decay(0.1))},
    {"SGD, momentum", make<SGD>(SGDOptions(1e-2).momentum(0.9))},
    {"SGD, momentum, dampening, decay", make<SGD>(SGDOptions(1e-2).momentum(0.9).dampening(0.3).weight_decay(0.1))},
    {"SGD, Nesterov, decay", make<SGD>(SGDOptions(1e-2).momentum(0.9).nesterov(true).weight_decay(0.1))},
};

}  // namespace

TEST_CASE("the fused step equals torch::optim's over twenty steps, in parameters and state") {
  for (const auto& [type, tolerance] :
       {std::pair(at::kFloat, 1e-6), std::pair(at::kDouble, 1e-12), std::pair(at::kBFloat16, 0.05)}) {
    for (const auto& [name, make_optimizer] : kinds) {
      INFO(name << " in " << at::toString(type));
      Trained ours(make_optimizer, type);
      Trained theirs(make_optimizer, type);
      for (int step = 0; step < 20; ++step) {
        ours.set_gradients(step);
        theirs.set_gradients(step);
        CHECK(step::fused_step(*ours.optimizer));
        theirs.optimizer->step();
      }
      CHECK(largest_difference(ours, theirs) <= tolerance);

      const auto ours_state = step::save_optimizer(*ours.optimizer, names_of(ours));
      const auto state = step::save_optimizer(*theirs.optimizer, names_of(theirs));
      CHECK(ours_state.values().size() == state.values().size());
      for (const auto& [path, value] : state.values()) {
        INFO(path);
        REQUIRE(ours_state.contains(path));
        if (std::holds_alternative<std::int64_t>(value)) {
          CHECK(std::get<std::int64_t>(ours_state.values().at(path)) == std::get<std::int64_t>(value));
        } else if (std::holds_alternative<at::Tensor>(value)) {
          CHECK(at::allclose(std::get<at::Tensor>(ours_state.values().at(path)), std::get<at::Tensor>(value),
                             10 * tolerance, tolerance));
        }
      }
    }
  }
}

TEST_CASE("fused and own steps can alternate, even if the state was restored in another layout") {
  for (const auto& [name, make_optimizer] : kinds) {
    INFO(name);
    Trained mixed(make_optimizer, at::kDouble);
    Trained theirs(make_optimizer, at::kDouble);
    for (int step = 0; step < 12; ++step) {
      mixed.set_gradients(step);
      theirs.set_gradients(step);
      step::step(*mixed.optimizer, step % 3 == 2 ? StepKernel::own : StepKernel::fused);
      theirs.optimizer->step();
      if (step != 5) continue;
      StateDict restored;
      const auto saved = step::save_optimizer(*mixed.optimizer, names_of(mixed));
      for (const auto& [path, value] : saved.values()) {
        std::visit([&, &path = path](const auto& held) { restored.put(path, held); }, value);
        if (const auto* tensor = std::get_if<at::Tensor>(&value)) restored.put(path, tensor->contiguous());
      }
      step::load_optimizer(*mixed.optimizer, names_of(mixed), restored);
    }
    CHECK(largest_difference(mixed, theirs) <= 1e-12);
  }
}

TEST_CASE("tensors that the kernels would misread use the optimizer's own step") {
  const auto adamw = make<AdamW>(AdamWOptions(0.1));
  const auto takes = [](Optimizer& optimizer) {
    const auto before = optimizer.param_groups()[0].params()[0].detach().clone();
    if (step::fused_step(optimizer)) return true;
    CHECK(at::equal(optimizer.param_groups()[0].params()[0], before));
    CHECK(optimizer.state().empty());
    step::step(optimizer, StepKernel::fused);
    CHECK_FALSE(at::equal(optimizer.param_groups()[0].params()[0], before));
    return false;
  };
  const auto parameter = [](const at::Tensor& values, const at::Tensor& gradient) {
    auto leaf = values.detach().requires_grad_();
    leaf.mutable_grad() = gradient;
    return leaf;
  };
  const auto square = at::rand({4, 4});
  CHECK(takes(*adamw({OptimizerParamGroup({parameter(square.clone(), at::rand({4, 4}))})})));

  SECTION("a gradient in another layout") {
    CHECK_FALSE(takes(*adamw({OptimizerParamGroup({parameter(square, at::rand({4, 4}).t())})})));
  }
  SECTION("a parameter with gaps") {
    const auto gradient = at::rand({4, 4}).narrow(1, 0, 2);
    CHECK_FALSE(takes(*adamw({OptimizerParamGroup({parameter(square.narrow(1, 0, 2), gradient)})})));
  }
  SECTION("a complex parameter") {
    CHECK_FALSE(takes(*make<SGD>(SGDOptions(0.1))(
        {OptimizerParamGroup({parameter(at::rand({4}, at::kComplexFloat), at::rand({4}, at::kComplexFloat))})})));
  }
  SECTION("a parameter that is listed twice") {
    const auto twin = parameter(square, at::rand({4, 4}));
    CHECK_FALSE(takes(*adamw({OptimizerParamGroup({twin, twin})})));
  }
  SECTION("amsgrad") {
    CHECK_FALSE(takes(
        *make<AdamW>(AdamWOptions(0.1).amsgrad(true))({OptimizerParamGroup({parameter(square, at::rand({4, 4}))})})));
  }
  SECTION("another optimizer, or a subclass of a known one") {
    struct OwnAdamW : AdamW {
      using AdamW::AdamW;
      at::Tensor step(LossClosure /*closure*/ = nullptr) override {
        const at::NoGradGuard no_grad;
        param_groups()[0].params()[0].add_(1);
        return {};
      }
    };
    const std::vector<OptimizerParamGroup> groups = {OptimizerParamGroup({parameter(square, at::rand({4, 4}))})};
    CHECK_FALSE(takes(*make<OwnAdamW>(AdamWOptions(0.1))(groups)));
  }
}

TEST_CASE("a sparse gradient uses the optimizer's own step") {
  auto table = at::rand({5, 2}).requires_grad_();
  table.mutable_grad() = at::rand({5, 2}).to_sparse(1);
  Adagrad adagrad({table}, AdagradOptions(0.1));
  AdamW adamw({table}, AdamWOptions(0.1));
  CHECK_FALSE(step::fused_step(adamw));
  CHECK_THROWS_WITH(step::step(adamw, StepKernel::fused), ContainsSubstring("sparse"));
  CHECK_NOTHROW(step::step(adagrad, StepKernel::fused));
}

TEST_CASE("gradients that autograd creates for a single output fit") {
  auto weight = at::rand({1, 6}).requires_grad_();
  SGD sgd({weight}, SGDOptions(0.1).momentum(0.5));
  const auto before = weight.detach().clone();
  at::linear(at::ones({3, 6}), weight).sum().backward();
  CHECK(step::fused_step(sgd));
  CHECK(at::allclose(weight, before - 0.3));
  weight.mutable_grad() = at::ones({6, 1}).t();
  CHECK(step::fused_step(sgd));
  CHECK(at::allclose(weight, before - 0.3 - 0.25));
}
