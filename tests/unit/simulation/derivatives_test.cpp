// Derivatives of twenty networks against finite differences in float64, in C++ and from C.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/tensordot.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/derivatives.hpp>
#include <hortator/error.hpp>
#include <hortator/models/from_settings.hpp>
#include <hortator/models/registered.hpp>
#include <memory>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr int networks = 20;
constexpr double tolerance = 1e-7;
const std::vector<std::int64_t> shape = {2, 5, 8};  // of inputs, and of outputs that are not energies
constexpr std::int64_t count = 80;

std::string named(const char* kind, int number) {
  return std::string(kind) + (number < 10 ? "0" : "") + std::to_string(number);
}

bool is_graph(int number) { return number == 18 || number == 19; }

std::vector<std::int64_t> energy_shape(int number) {
  if (number == 20) return shape;
  const bool has_channels = number >= 11 && number <= 15;
  return has_channels ? std::vector<std::int64_t>{2, 1, 8} : std::vector<std::int64_t>{2, 5, 1};
}

/// Numbers from -1 to 1.
at::Tensor waves(const std::vector<std::int64_t>& sizes, double phase) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble).mul_(0.7).add_(phase).sin_().view(sizes);
}

at::Tensor edges() {
  const auto one = at::tensor({0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 2}, at::kLong).view({2, 6});
  return one.expand({2, 2, 6}).contiguous();
}

using Values = std::function<at::Tensor(const at::Tensor&)>;

/// The derivative in a direction, of fourth order.
at::Tensor difference(const Values& values, const at::Tensor& at, const at::Tensor& direction) {
  constexpr double step = 1e-4;
  const auto between = [&](double steps) {
    return values(at + direction * (steps * step)) - values(at - direction * (steps * step));
  };
  return (between(1) * 8 - between(2)) / (12 * step);
}

/// Column by column: [output..., input...].
at::Tensor difference_jacobian(const Values& values, const at::Tensor& at) {
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0; i < at.numel(); ++i) {
    const auto direction = at::zeros_like(at);
    direction.view(-1)[i].fill_(1);
    columns.push_back(difference(values, at, direction));
  }
  auto sizes = columns.front().sizes().vec();
  sizes.insert(sizes.end(), at.sizes().begin(), at.sizes().end());
  return at::stack(columns, -1).view(sizes);
}

double distance(const at::Tensor& one, const at::Tensor& other) {
  REQUIRE(one.sizes() == other.sizes());
  return (one - other).abs().max().item<double>();
}

/// The derivatives of each sample by its own input.
at::Tensor of_samples(const at::Tensor& whole) { return at::stack({whole[0].select(2, 0), whole[1].select(2, 1)}); }

/// A network of derivative_nets.yaml in C++.
class Net {
 public:
  Net(const char* kind, int number) : is_graph_(is_graph(number)) {
    torch::manual_seed(number);
    parts_ = hortator::from_settings(DERIVATIVE_NETS, named(kind, number));
    parts_.network->eval();
  }
  std::vector<at::Tensor> operator()(const at::Tensor& input) const {
    return parts_.network->forward(is_graph_ ? std::vector{input, edges()} : std::vector{input});
  }
  hortator::TensorFunction output(std::size_t number) const {
    return [this, number](const at::Tensor& input) { return (*this)(input)[number]; };
  }
  std::vector<at::Tensor> parameters() const { return parts_.network->parameters(); }
  const hortator::ConfiguredModel& parts() const { return parts_; }

 private:
  hortator::ConfiguredModel parts_;
  bool is_graph_;
};

Values without_graph(hortator::TensorFunction function) {
  return [function = std::move(function)](const at::Tensor& input) {
    const at::NoGradGuard no_grad;
    return function(input).clone();
  };
}

}  // namespace

TEST_CASE("derivatives of twenty networks are those of finite differences", "[simulation]") {
  const auto input = waves(shape, 0.1);
  const auto direction = waves(shape, 0.5);
  const auto cotangent = waves(shape, 0.9);
  for (int number = 1; number <= networks; ++number) {
    CAPTURE(number);
    const Net net("net", number);
    const auto output = net.output(0);
    const auto expected = difference_jacobian(without_graph(output), input);
    const auto whole = hortator::jacobian(output, input);
    CHECK(distance(whole, expected) < tolerance);
    CHECK(distance(hortator::sample_jacobian(output, input), of_samples(expected)) < tolerance);
    CHECK(distance(hortator::tangent(output, input, direction),
                   at::tensordot(expected, direction, {3, 4, 5}, {0, 1, 2})) < tolerance);
    CHECK(distance(hortator::adjoint(output, input, cotangent),
                   at::tensordot(cotangent, expected, {0, 1, 2}, {0, 1, 2})) < tolerance);
    CHECK_FALSE(whole.requires_grad());
    for (const auto& parameter : net.parameters()) CHECK_FALSE(parameter.grad().defined());
  }
}

TEST_CASE("forces of twenty energies, and gradients of losses of forces, are those of finite differences",
          "[simulation]") {
  const auto input = waves(shape, 0.2);
  const auto wanted = waves(shape, 0.6);
  for (int number = 1; number <= networks; ++number) {
    CAPTURE(number);
    const Net net("energy", number);
    const auto forces = without_graph(net.output(1));
    const auto energy = without_graph([&](const at::Tensor& x) { return net(x)[0].sum(); });
    CHECK(distance(forces(input), -difference_jacobian(energy, input)) < tolerance);
    CHECK(distance(hortator::tangent(net.output(1), input, wanted), difference(forces, input, wanted)) < tolerance);

    const auto loss = [&] {
      const auto outputs = net(input);
      return net.parts().loss(outputs, {at::ones_like(outputs[0]), wanted}, {});
    };
    std::vector<at::Tensor> learning;
    std::vector<at::Tensor> directions;
    for (const auto& parameter : net.parameters()) {
      if (!parameter.requires_grad()) continue;
      learning.push_back(parameter);
      directions.push_back(waves(parameter.sizes().vec(), 0.3));
    }
    double slope = 0;
    const auto gradients = torch::autograd::grad({loss()}, learning, {}, {}, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < learning.size(); ++i)
      if (gradients[i].defined()) slope += (gradients[i] * directions[i]).sum().item<double>();
    const auto loss_along = [&](const at::Tensor& steps) {
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < learning.size(); ++i) learning[i].add_(directions[i] * steps);
      const auto result = loss().clone();
      for (std::size_t i = 0; i < learning.size(); ++i) learning[i].sub_(directions[i] * steps);
      return result;
    };
    const auto expected = difference(loss_along, at::zeros({}, at::kDouble), at::ones({}, at::kDouble));
    CHECK(slope == Approx(expected.item<double>()).epsilon(tolerance).margin(tolerance));
  }
}

namespace {

/// An array of a test as C sees it.
class CTensor {
 public:
  explicit CTensor(const at::Tensor& tensor)
      : tensor_(tensor.contiguous()),
        array_(tensor_.data_ptr(), tensor_.scalar_type() == at::kLong ? HORTATOR_I64 : HORTATOR_F64,
               tensor_.sizes().vec()) {}
  const at::Tensor& tensor() const { return tensor_; }
  const Array& array() const { return array_; }

 private:
  at::Tensor tensor_;
  Array array_;
};

/// A model of a run, its input, and arrays for its outputs.
class CModel {
 public:
  CModel(const CRun& run, const std::string& name, int number, const std::vector<std::vector<std::int64_t>>& outputs)
      : model_(run.model(name.c_str())), batch_(run) {
    batch_.add(HORTATOR_INPUT, input_.array());
    if (is_graph(number)) batch_.add(HORTATOR_INPUT, edges_.array());
    for (const auto& sizes : outputs) outputs_.push_back(std::make_unique<CTensor>(at::zeros(sizes, at::kDouble)));
    for (const auto& output : outputs_) batch_.add(HORTATOR_OUTPUT, output->array());
  }

  const at::Tensor& input() const { return input_.tensor(); }
  Values output(std::size_t number) const {
    return [this, number](const at::Tensor& input) {
      const auto kept = input_.tensor().clone();
      at::Tensor(input_.tensor()).copy_(input);
      REQUIRE(hortator_infer(model_, batch_) == HORTATOR_OK);
      at::Tensor(input_.tensor()).copy_(kept);
      return outputs_[number]->tensor().clone();
    };
  }
  at::Tensor tangent(int output, const at::Tensor& direction) const {
    const CTensor result(at::zeros(shape, at::kDouble));
    REQUIRE(hortator_tangent(model_, batch_, output, 0, CTensor(direction).array().get(), result.array().get()) ==
            HORTATOR_OK);
    return result.tensor();
  }
  at::Tensor jacobian(int output, const std::vector<std::int64_t>& sizes) const {
    const CTensor result(at::zeros(sizes, at::kDouble));
    REQUIRE(hortator_jacobian(model_, batch_, output, 0, result.array().get()) == HORTATOR_OK);
    return result.tensor();
  }
  hortator_model* handle() const { return model_; }
  CBatch& batch() { return batch_; }

 private:
  hortator_model* model_;
  CTensor input_{waves(shape, 0.1)};
  CTensor edges_{edges()};
  std::vector<std::unique_ptr<CTensor>> outputs_ = {};
  CBatch batch_;
};

at::Tensor parameters_of(const CModel& model, const std::string& folder) {
  REQUIRE(hortator_export(model.handle(), folder.c_str()) == HORTATOR_OK);
  const hortator::SafetensorsFile file(folder + "/model.safetensors");
  std::vector<at::Tensor> all;
  for (const auto& name : file.names()) {
    const auto one = file.get(name);
    if (one.is_floating_point()) all.push_back(one.flatten());
  }
  return at::cat(all);
}

}  // namespace

TEST_CASE("C computes derivatives of twenty networks as finite differences do", "[simulation]") {
  const CRun run(DERIVATIVE_NETS);
  const auto direction = waves(shape, 0.5);
  for (int number = 1; number <= networks; ++number) {
    CAPTURE(number);
    const CModel net(run, named("net", number), number, {shape});
    const auto expected = difference_jacobian(net.output(0), net.input());
    CHECK(distance(net.jacobian(0, {2, 5, 8, 2, 5, 8}), expected) < tolerance);
    CHECK(distance(net.jacobian(0, {2, 5, 8, 5, 8}), of_samples(expected)) < tolerance);
    CHECK(distance(net.tangent(0, direction), at::tensordot(expected, direction, {3, 4, 5}, {0, 1, 2})) < tolerance);

    const CModel field(run, named("energy", number), number, {energy_shape(number), shape});
    const auto sum = [&](const at::Tensor& input) { return field.output(0)(input).sum(); };
    CHECK(distance(field.output(1)(field.input()), -difference_jacobian(sum, field.input())) < tolerance);
    CHECK(distance(field.tangent(1, direction), difference(field.output(1), field.input(), direction)) < tolerance);
    const auto curvature = field.jacobian(1, {2, 5, 8, 2, 5, 8});
    CHECK(distance(curvature, curvature.permute({3, 4, 5, 0, 1, 2})) < tolerance);  // of a Hessian
  }
}

// The change of the loss between two states of a descent is the mean of their gradients times the way.
TEST_CASE("training on forces from C follows the gradient of the loss", "[simulation]") {
  const CRun run(DERIVATIVE_NETS);
  constexpr double rate = 1e-6;
  for (int number = 1; number <= networks; ++number) {
    CAPTURE(number);
    CModel field(run, named("energy", number), number, {energy_shape(number), shape});
    const CTensor energy(at::ones(energy_shape(number), at::kDouble));
    const CTensor forces(waves(shape, 0.6));
    field.batch().add(HORTATOR_TARGET, energy.array()).add(HORTATOR_TARGET, forces.array());
    std::vector<at::Tensor> weights;
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
      weights.push_back(parameters_of(field, "forces_export"));
      losses.push_back(-1);
      REQUIRE(hortator_train(field.handle(), field.batch(), &losses.back()) == HORTATOR_OK);
    }
    const auto way = (weights[0] - weights[1]) / rate;
    const auto next = (weights[1] - weights[2]) / rate;
    const auto slope = ((way + next) * way).sum().item<double>() / 2;
    CHECK((losses[0] - losses[1]) / rate == Approx(slope).epsilon(tolerance).margin(tolerance));
    CHECK(slope > 0);
  }
}

TEST_CASE("derivatives that do not exist are refused by their reason", "[simulation]") {
  const CRun run(DERIVATIVE_NETS);
  const CModel net(run, "net01", 1, {shape});
  CBatch batch(run);
  const CTensor input(waves(shape, 0.1));
  const CTensor result(at::zeros(shape, at::kDouble));
  const CTensor small(at::zeros({2, 5}, at::kDouble));
  const auto tangent = [&](int output, int from, const CTensor& direction) {
    return hortator_tangent(net.handle(), batch, output, from, direction.array().get(), result.array().get());
  };
  CHECK(tangent(0, 0, input) == HORTATOR_USAGE);
  CHECK(error_has("The batch has no input"));
  batch.add(HORTATOR_INPUT, input.array());
  CHECK(tangent(1, 0, input) == HORTATOR_USAGE);
  CHECK(error_has("no output with the number 1"));
  CHECK(tangent(0, -1, input) == HORTATOR_USAGE);
  CHECK(error_has("no input with the number -1"));
  CHECK(tangent(0, 0, small) == HORTATOR_USAGE);
  CHECK(error_has("The direction has the shape [2, 5], the input [2, 5, 8]"));
  CHECK(hortator_jacobian(net.handle(), batch, 0, 0, small.array().get()) == HORTATOR_USAGE);
  CHECK(error_has("with 5 dimensions for each sample"));
  CHECK(hortator_jacobian(net.handle(), batch, 0, 0, nullptr) == HORTATOR_USAGE);

  const CModel graph(run, "net18", 18, {shape});
  CBatch whole(run);
  const CTensor of_nodes(edges());
  const CTensor jacobian(at::zeros({2, 5, 8, 5, 8}, at::kDouble));
  whole.add(HORTATOR_INPUT, input.array()).add(HORTATOR_INPUT, of_nodes.array());
  CHECK(hortator_jacobian(graph.handle(), whole, 0, 1, jacobian.array().get()) == HORTATOR_USAGE);
  CHECK(error_has("no derivatives with respect to whole numbers"));
}

TEST_CASE("a Jacobian of samples that depend on each other is refused", "[simulation]") {
  const auto input = waves({3, 4}, 0);
  const auto coupled = [](const at::Tensor& x) { return x * x + 1e-3 * x.roll(1, 0).pow(2); };
  CHECK_THROWS_WITH(hortator::sample_jacobian(coupled, input), ContainsSubstring("depend on each other"));
  CHECK(distance(hortator::jacobian(coupled, input), difference_jacobian(coupled, input)) < tolerance);
  CHECK_THROWS_WITH(hortator::sample_jacobian([](const at::Tensor& x) { return x.sum(); }, input),
                    ContainsSubstring("samples in the first dimension"));
  const auto empty = hortator::sample_jacobian([](const at::Tensor& x) { return x.sum(1); }, at::zeros({0, 4}));
  CHECK(empty.sizes() == at::IntArrayRef({0, 4}));
}

TEST_CASE("complex numbers have tangents and adjoints, and no Jacobian", "[simulation]") {
  const auto input = at::complex(waves({2, 3}, 0.1), waves({2, 3}, 0.4));
  const auto direction = at::complex(waves({2, 3}, 0.7), waves({2, 3}, 0.2));
  const auto function = [](const at::Tensor& z) { return z * z + z.conj() * 3; };
  const auto expected = 2 * input * direction + 3 * direction.conj();
  CHECK((hortator::tangent(function, input, direction) - expected).abs().max().item<double>() < tolerance);
  CHECK_THROWS_WITH(hortator::jacobian(function, input), ContainsSubstring("use the tangent"));
}

TEST_CASE("an output that does not depend on the input has no derivatives", "[simulation]") {
  const auto input = waves({2, 3}, 0.1);
  const auto constant = [](const at::Tensor& x) { return x.detach() * 2; };
  CHECK_THROWS_WITH(hortator::adjoint(constant, input, input), ContainsSubstring("has no derivatives"));
  CHECK_THROWS_WITH(hortator::energy_and_forces(constant, input),
                    ContainsSubstring("does not depend on the positions"));
  CHECK_THROWS_WITH(hortator::energy_and_forces(constant, edges()), ContainsSubstring("not floating-point numbers"));
  const auto parameter = at::ones({2, 3}, at::kDouble).requires_grad_();
  const auto apart = [&](const at::Tensor&) { return parameter * 2; };
  CHECK(hortator::jacobian(apart, input).abs().max().item<double>() == 0);
  CHECK(hortator::tangent(apart, input, input).abs().max().item<double>() == 0);
  CHECK_THROWS_WITH(hortator::energy_and_forces(apart, input), ContainsSubstring("does not depend on the positions"));
  const auto steps = [](const at::Tensor& x) { return x.round(); };
  CHECK(hortator::tangent(steps, input, input).abs().max().item<double>() == 0);
}

TEST_CASE("forces of attention train, and fused attention is back afterwards", "[simulation]") {
  const auto input = waves({1, 2, 6, 4}, 0.1).to(at::kFloat);
  const auto weight = waves({4, 4}, 0.3).to(at::kFloat).requires_grad_();
  const auto energy = [&](const at::Tensor& x) {
    return at::scaled_dot_product_attention(x.matmul(weight), x, x).pow(2).sum();
  };
  const auto result = hortator::energy_and_forces(energy, input);
  const auto gradient = torch::autograd::grad({result.forces.pow(2).sum()}, {weight}).front();
  CHECK(gradient.abs().sum().item<float>() > 0);
  CHECK(at::globalContext().userEnabledFlashSDP());
  const at::NoGradGuard no_grad;
  const auto alone = hortator::energy_and_forces(energy, input);
  CHECK_FALSE(alone.forces.requires_grad());
  CHECK_FALSE(alone.energy.requires_grad());
  CHECK((alone.forces - result.forces).abs().max().item<float>() < 1e-4);
}

TEST_CASE("forces train alike at the stages of ZeRO that have whole parameters", "[simulation]") {
  const auto losses_of = [](const std::string& more) {
    const CRun run(
        settings_file("divided_forces", more + "models: {net: {type: mlp, layers: [2, 8, 1], activation: tanh, "
                                               "dtype: float64, forces: true, optimizer: {type: adam, lr: 0.1}}}\n"));
    auto* net = run.model("net");
    const CTensor positions(waves({6, 2}, world_rank()));
    const CTensor energies(waves({6, 1}, 2 + world_rank()));
    const CTensor forces(waves({6, 2}, 1));
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, positions.array())
        .add(HORTATOR_TARGET, energies.array())
        .add(HORTATOR_TARGET, forces.array());
    std::vector<double> losses(8);
    for (auto& loss : losses) REQUIRE(hortator_train(net, batch, &loss) == HORTATOR_OK);
    return losses;
  };
  const auto expected = losses_of("");
  CHECK(expected.back() < expected.front());
  for (const char* stage : {"1", "2"}) {
    const auto losses = losses_of(std::string("zero_stage: ") + stage + "\n");
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(expected[i]).epsilon(1e-9));
  }
  const auto accumulated = losses_of("gradient_accumulation_steps: 2\n");
  CHECK(accumulated[0] == Approx(accumulated[1]));
  CHECK(accumulated[2] == Approx(expected[1]).epsilon(1e-9));
  const CRun run(settings_file(
      "whole_forces", "zero_stage: 3\nmodels: {net: {type: mlp, layers: [2, 1], forces: true, optimizer: sgd}}\n"));
  hortator_model* model = nullptr;
  CHECK(hortator_model_create(run, "net", &model) == HORTATOR_USAGE);
  CHECK(error_has("has forces in a run with zero_stage 3"));
}

TEST_CASE("an operator without a second derivative is an error that names it", "[simulation]") {
  hortator::models::register_module("fused_attention", [] {
    return torch::nn::AnyModule(torch::nn::Functional([](const at::Tensor& input) {
      const auto x = input.unsqueeze(1);
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(x, x, x)).squeeze(1);
    }));
  });
  const CRun run(settings_file("fused", "models: {net: {type: module, name: fused_attention, dtype: float64}}\n"));
  auto* net = run.model("net");
  const CTensor input(waves(shape, 0.1));
  const CTensor result(at::zeros(shape, at::kDouble));
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, input.array());
  CHECK(hortator_adjoint(net, batch, input.array().get(), result.array().get()) == HORTATOR_OK);
  CHECK(hortator_tangent(net, batch, 0, 0, input.array().get(), result.array().get()) == HORTATOR_USAGE);
  CHECK(error_has("flash_attention_for_cpu_backward"));
}

TEST_CASE("settings of forces that cannot be are refused", "[simulation]") {
  const auto error_of = [](const std::string& name, const std::string& model) {  // each rank reads a file of this name
    const auto file = settings_file(name, "models: {net: {" + model + "}}\n");
    try {
      hortator::from_settings(file, "net");
    } catch (const hortator::UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error_of("many_energies", "type: mlp, layers: [3, 2], forces: true"),
             ContainsSubstring("has 2 output features"));
  CHECK_THAT(error_of("wrong_weight", "type: mlp, layers: [3, 1], forces: true, loss: {type: mse, weights: [1, -1]}"),
             ContainsSubstring("expected numbers from 0"));
  const auto few = hortator::from_settings(
      settings_file("few_weights", "models: {net: {type: mlp, layers: [3, 1], loss: {type: mse, weights: [1, 2]}}}\n"),
      "net");
  const auto one = at::ones({2, 1});
  CHECK_THROWS_WITH(few.loss({one}, {one}, {}), ContainsSubstring("has 2 weights, the model 1 output"));
}

TEST_CASE("an output of weight 0 is not compared with its target", "[simulation]") {
  const auto parts = hortator::from_settings(
      settings_file("no_energies",
                    "models: {net: {type: mlp, layers: [3, 1], forces: true, loss: {type: mse, weights: [0, 2]}}}\n"),
      "net");
  const auto one = at::ones({2, 1});
  const auto loss = parts.loss({one, one * 3}, {one * std::nan(""), one}, {});
  CHECK(loss.item<float>() == 8);
}
