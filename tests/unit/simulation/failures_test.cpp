// What goes wrong in a training step on one rank only, and models whose ranks could drift apart.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <hortator/models/registered.hpp>
#include <stdexcept>

#include "c_run.hpp"
#include "normalized_net.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

bool breaks_here = false;

/// The identity, whose backward pass fails where it is asked to.
struct Fragile : torch::autograd::Function<Fragile> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list gradients) {
    if (breaks_here) throw std::runtime_error("the adjoint has failed");
    return gradients;
  }
};

enum class BreakingPoint { after_all, middle, before_all };

/// Two linear layers. Its backward pass can fail before any parameter has a gradient, between them, or after all.
class FragileNet : public torch::nn::Module {
 public:
  explicit FragileNet(BreakingPoint point) : point_(point) {
    first_ = register_module("first", torch::nn::Linear(2, 4));
    second_ = register_module("second", torch::nn::Linear(4, 1));
  }
  at::Tensor forward(const at::Tensor& input) {
    auto x = point_ == BreakingPoint::after_all ? Fragile::apply(input.detach().requires_grad_()) : input;
    x = first_(x);
    if (point_ == BreakingPoint::middle) x = Fragile::apply(x);
    x = second_(x);
    return point_ == BreakingPoint::before_all ? Fragile::apply(x) : x;
  }

 private:
  BreakingPoint point_;
  torch::nn::Linear first_{nullptr};
  torch::nn::Linear second_{nullptr};
};

/// A layer that a rank may leave out.
class PartlyUsedNet : public torch::nn::Module {
 public:
  PartlyUsedNet() {
    used_ = register_module("used", torch::nn::Linear(2, 1));
    idle_ = register_module("idle", torch::nn::Linear(2, 1));
  }
  at::Tensor forward(const at::Tensor& input) { return breaks_here ? used_(input) : used_(input) + idle_(input); }

 private:
  torch::nn::Linear used_{nullptr};
  torch::nn::Linear idle_{nullptr};
};

void register_modules() {
  static const bool is_done = [] {
    using hortator::models::register_module;
    using torch::nn::AnyModule;
    register_module("before_all", [] { return AnyModule(FragileNet(BreakingPoint::before_all)); });
    register_module("middle", [] { return AnyModule(FragileNet(BreakingPoint::middle)); });
    register_module("after_all", [] { return AnyModule(FragileNet(BreakingPoint::after_all)); });
    register_module("partly_used", [] { return AnyModule(PartlyUsedNet()); });
    register_module("normalized", [] { return AnyModule(NormalizedNet()); });
    return true;
  }();
  static_cast<void>(is_done);
}

std::string settings_of(const std::string& module, const std::string& more = "") {
  register_modules();
  return more + "models: {net: {type: module, name: " + module + ", optimizer: {type: sgd, lr: 0.1}}}\n";
}

/// Samples of this rank, and a probe that is the same on all ranks.
struct Data {
  explicit Data(hortator_run* run) : batch(run), probing(run) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = std::sin(static_cast<float>(i) + static_cast<float>(10 * world_rank()));
    batch.add(HORTATOR_INPUT, Array(inputs, {6, 2})).add(HORTATOR_TARGET, Array(targets, {6, 1}));
    probing.add(HORTATOR_INPUT, Array(probe, {2, 2})).add(HORTATOR_OUTPUT, Array(outputs, {2, 1}));
  }
  std::vector<float> outputs_of(hortator_model* model) {
    REQUIRE(hortator_infer(model, probing) == HORTATOR_OK);
    return outputs;
  }

  std::vector<float> inputs = std::vector<float>(12);
  std::vector<float> targets = std::vector<float>(6, 0.5F);
  std::vector<float> probe = {1, 2, -1, 0.5F};
  std::vector<float> outputs = std::vector<float>(2);
  CBatch batch;
  CBatch probing;
};

bool equal_on_all_ranks(const std::vector<float>& values) {
  std::vector<float> bounds = values;
  for (const float value : values) bounds.push_back(-value);
  MPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(bounds.size()), MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (bounds[i] != -bounds[values.size() + i]) return false;
  }
  return true;
}

/// The outputs after `steps` steps. Those in `failing` fail on the last rank.
std::vector<float> outputs_after(const std::string& settings, int steps, const std::vector<int>& failing) {
  const CRun run(settings_file("backward", settings));
  auto* model = run.model("net");
  REQUIRE(model != nullptr);
  Data data(run);
  for (int step = 0; step < steps; ++step) {
    const bool fails = std::ranges::find(failing, step) != failing.end();
    breaks_here = fails && world_rank() == world_size() - 1;
    double loss = -1;
    const auto status = hortator_train(model, data.batch, &loss);
    breaks_here = false;
    CHECK(status == (fails ? HORTATOR_FAILED : HORTATOR_OK));
    CHECK(same_on_all(status));
    if (fails) {
      CHECK(loss == -1);
      CAPTURE(hortator_last_error());
      CHECK(error_has("rank " + std::to_string(world_size() - 1) + ": "));
      CHECK(error_has("the adjoint has failed"));
    }
  }
  return data.outputs_of(model);
}

}  // namespace

TEST_CASE("a backward pass that fails on one rank fails on all, and the next step is as if it had not been tried",
          "[simulation]") {
  const auto* const module = GENERATE("before_all", "middle", "after_all");
  const auto* const more = GENERATE("", "zero_stage: 1\n", "zero_stage: 2\n");
  CAPTURE(module, more);
  const auto settings = settings_of(module, more);
  const auto expected = outputs_after(settings, 4, {});
  const auto found = outputs_after(settings, 6, {0, 3});
  CHECK(equal_on_all_ranks(found));
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("a micro-step whose backward pass fails on one rank makes all ranks begin the update again", "[simulation]") {
  const auto settings = settings_of("middle", "gradient_accumulation_steps: 2\n");
  const auto expected = outputs_after(settings, 4, {});
  const auto in_first = outputs_after(settings, 5, {2});
  const auto in_second = outputs_after(settings, 6, {3});  // and the first one is repeated as well
  CHECK(equal_on_all_ranks(in_first));
  CHECK(equal_on_all_ranks(in_second));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(in_first[i] == Approx(expected[i]).margin(1e-6));
    CHECK(in_second[i] == Approx(expected[i]).margin(1e-6));
  }
}

TEST_CASE("parameters without a gradient on one rank are named on all, unless that is allowed", "[simulation]") {
  if (world_size() == 1) return;
  const bool is_allowed = GENERATE(false, true);
  const CRun run(
      settings_file("unused", settings_of("partly_used", is_allowed ? "find_unused_parameters: true\n" : "")));
  auto* model = run.model("net");
  Data data(run);
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  const auto before = data.outputs_of(model);
  breaks_here = world_rank() == 1;
  const auto status = hortator_train(model, data.batch, nullptr);
  breaks_here = false;
  CHECK(same_on_all(status));
  CHECK(status == (is_allowed ? HORTATOR_OK : HORTATOR_USAGE));
  if (!is_allowed) {
    CHECK(error_has("rank 1: Backward gave no gradient to"));
    CHECK(error_has("idle"));
    CHECK(data.outputs_of(model) == before);
  }
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(equal_on_all_ranks(data.outputs_of(model)));
}

TEST_CASE("BatchNorm's statistics are the same on all ranks after a step", "[simulation]") {
  const CRun run(settings_file("batch_norm", settings_of("normalized")));
  auto* model = run.model("net");
  Data data(run);
  const auto before = data.outputs_of(model);
  for (int step = 0; step < 5; ++step) REQUIRE(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(data.outputs_of(model) != before);
  CHECK(equal_on_all_ranks(data.outputs_of(model)));
}

TEST_CASE("local calls are refused where parameters are distributed over the ranks", "[simulation]") {
  const bool is_in_environment = GENERATE(false, true);
  if (is_in_environment) setenv("HORTATOR_ZERO_STAGE", "3", 1);
  const CRun run(settings_file("distributed", settings_of("middle", is_in_environment ? "" : "zero_stage: 3\n")));
  unsetenv("HORTATOR_ZERO_STAGE");
  auto* model = run.model("net");
  Data data(run);
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(hortator_infer(model, data.probing) == HORTATOR_USAGE);
  CHECK(error_has("infer() with zero_stage 3"));
  CHECK(hortator_evaluate(model, data.batch, nullptr) == HORTATOR_USAGE);
  std::vector<float> weights(2);
  std::vector<float> gradient(4);
  CHECK(hortator_adjoint(model, data.probing, Array(weights, {2, 1}).get(), Array(gradient, {2, 2}).get()) ==
        HORTATOR_USAGE);
}
