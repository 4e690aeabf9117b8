// Training steps with numbers that are not finite: they change nothing, on any rank.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <hortator/models/registered.hpp>
#include <limits>

#include "c_run.hpp"
#include "normalized_net.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();
bool spoils_gradients = false;

/// The identity, whose gradient can be infinite.
struct Steep : torch::autograd::Function<Steep> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list gradients) {
    if (spoils_gradients) gradients.front() = gradients.front() / 0;
    return gradients;
  }
};

class SteepNet : public torch::nn::Module {
 public:
  SteepNet() { layer_ = register_module("layer", torch::nn::Linear(2, 1)); }
  at::Tensor forward(const at::Tensor& input) { return Steep::apply(layer_(input)); }

 private:
  torch::nn::Linear layer_{nullptr};
};

std::string nonfinite_settings(const std::string& more = "", const std::string& of_model = "") {
  static const bool once = [] {
    hortator::models::register_module("steep", [] { return torch::nn::AnyModule(SteepNet()); });
    hortator::models::register_module("norm", [] { return torch::nn::AnyModule(NormalizedNet()); });
    return true;
  }();
  static_cast<void>(once);
  const auto optimizer = "optimizer: {type: adam, lr: 0.1}" + of_model + "}";
  return more + "models: {net: {type: mlp, layers: [2, 4, 1], " + optimizer + ", steep: {type: module, name: steep, " +
         optimizer + ", norm: {type: module, name: norm, " + optimizer + "}\n";
}

/// Samples of this rank, with a number that can be spoilt on the last rank, and a probe.
struct SpoiltData {
  explicit SpoiltData(hortator_run* run) : batch(run), probing(run) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = std::sin(static_cast<float>(i) + static_cast<float>(7 * world_rank()));
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = inputs[2 * i] * inputs[2 * i + 1];
    batch.add(HORTATOR_INPUT, Array(inputs, {6, 2})).add(HORTATOR_TARGET, Array(targets, {6, 1}));
    probing.add(HORTATOR_INPUT, Array(probe, {2, 2})).add(HORTATOR_OUTPUT, Array(outputs, {2, 1}));
  }
  std::vector<float> outputs_of(hortator_model* model) {
    REQUIRE(hortator_infer(model, probing) == HORTATOR_OK);
    return outputs;
  }

  std::vector<float> inputs = std::vector<float>(12);
  std::vector<float> targets = std::vector<float>(6);
  std::vector<float> probe = {1, 2, -1, 0.5F};
  std::vector<float> outputs = std::vector<float>(2);
  CBatch batch;
  CBatch probing;
};

bool is_spoilt_rank() { return world_rank() == world_size() - 1; }

/// Trains with one number spoilt on the last rank.
hortator_status train_with(hortator_model* model, SpoiltData& data, float& number, float spoilt,
                           double* loss = nullptr) {
  const float before = number;
  if (is_spoilt_rank()) number = spoilt;
  const auto status = hortator_train(model, data.batch, loss);
  number = before;
  return status;
}

}  // namespace

TEST_CASE("a step with NaN in a target or an input of one rank is left out on all", "[simulation]") {
  const bool is_target = GENERATE(true, false);
  const auto* const name = GENERATE("net", "norm");
  const auto* const more = GENERATE("", "zero_stage: 2\n");
  CAPTURE(is_target, name, more);
  const CRun run(settings_file("nan", nonfinite_settings(more)));
  auto* model = run.model(name);
  REQUIRE(model != nullptr);
  SpoiltData data(run);
  REQUIRE(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  const auto before = data.outputs_of(model);
  double loss = 0;
  const auto status = train_with(model, data, is_target ? data.targets[1] : data.inputs[3], not_a_number, &loss);
  CHECK(status == HORTATOR_NOTHING);
  CHECK(same_on_all(status));
  CHECK(std::isnan(loss));
  CHECK(data.outputs_of(model) == before);
  CHECK(hortator_train(model, data.batch, &loss) == HORTATOR_OK);
  CHECK(std::isfinite(loss));
  CHECK(data.outputs_of(model) != before);
}

TEST_CASE("a step with an infinite gradient on one rank is left out on all", "[simulation]") {
  const bool fails = GENERATE(false, true);
  const auto* const more = GENERATE("", "zero_stage: 1\n", "zero_stage: 2\n");
  CAPTURE(fails, more);
  const CRun run(settings_file("steep", nonfinite_settings(std::string(more) + (fails ? "on_nonfinite: fail\n" : ""))));
  auto* model = run.model("steep");
  SpoiltData data(run);
  REQUIRE(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  const auto before = data.outputs_of(model);
  spoils_gradients = is_spoilt_rank();
  double loss = -1;
  const auto status = hortator_train(model, data.batch, &loss);
  spoils_gradients = false;
  CHECK(status == (fails ? HORTATOR_FAILED : HORTATOR_NOTHING));
  CHECK(same_on_all(status));
  if (fails) CHECK(error_has("A gradient of the model 'steep' is not a finite number"));
  CHECK(data.outputs_of(model) == before);
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(data.outputs_of(model) != before);
}

TEST_CASE("with on_nonfinite: fail, the rank with NaN is named on all ranks", "[simulation]") {
  const CRun run(settings_file("fail", nonfinite_settings("on_nonfinite: fail\n")));
  auto* model = run.model("net");
  SpoiltData data(run);
  const auto before = data.outputs_of(model);
  const auto status = train_with(model, data, data.targets[0], not_a_number);
  CHECK(status == HORTATOR_FAILED);
  CHECK(same_on_all(status));
  CHECK(error_has("The loss of the model 'net' is nan"));
  if (world_size() > 1) CHECK(error_has("rank " + std::to_string(world_size() - 1) + ": "));
  CHECK(data.outputs_of(model) == before);
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
}

TEST_CASE("a checkpoint that is saved after NaN holds the last good model", "[simulation]") {
  const auto file = settings_file("saved", nonfinite_settings());
  std::vector<float> before;
  {
    const CRun run(file);
    auto* model = run.model("norm");
    SpoiltData data(run);
    REQUIRE(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
    before = data.outputs_of(model);
    CHECK(train_with(model, data, data.inputs[0], not_a_number) == HORTATOR_NOTHING);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  }
  const CRun run(file);
  auto* model = run.model("norm");
  SpoiltData data(run);
  REQUIRE(hortator_resume(run) == HORTATOR_OK);
  CHECK(data.outputs_of(model) == before);
  CHECK(std::isfinite(before[0]));
}

TEST_CASE("a model whose parameters have become infinite does not replace a good checkpoint", "[simulation]") {
  const auto file =
      settings_file("infinite", "models: {net: {type: mlp, layers: [2, 4, 1], optimizer: {type: sgd, lr: 3.0e+38}}}\n");
  std::vector<float> before;
  {
    const CRun run(file);
    auto* model = run.model("net");
    SpoiltData data(run);
    before = data.outputs_of(model);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
    for (auto& number : data.targets) number += 1000;
    REQUIRE(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);  // its loss and gradients are finite
    const auto status = hortator_save(run, 0, nullptr);
    CHECK(status == HORTATOR_FAILED);
    CHECK(same_on_all(status));
    CHECK(error_has("The model 'net' was not saved: its parameters are not finite"));
  }
  const CRun run(file);
  auto* model = run.model("net");
  SpoiltData data(run);
  REQUIRE(hortator_resume(run) == HORTATOR_OK);
  CHECK(data.outputs_of(model) == before);
}

TEST_CASE("a micro-step with NaN leaves its update out, and the next update is whole", "[simulation]") {
  const auto in_micro_step = GENERATE(0, 1, 2);
  const CRun run(settings_file("micro", nonfinite_settings("gradient_accumulation_steps: 3\n")));
  auto* model = run.model("net");
  SpoiltData data(run);
  const auto before = data.outputs_of(model);
  for (int step = 0; step < 3; ++step) {
    const auto status = step == in_micro_step ? train_with(model, data, data.targets[2], not_a_number)
                                              : hortator_train(model, data.batch, nullptr);
    CHECK(status == (step < in_micro_step ? HORTATOR_OK : HORTATOR_NOTHING));
  }
  CHECK(data.outputs_of(model) == before);
  CHECK(hortator_save(run, 0, nullptr) == HORTATOR_OK);  // between updates
  for (int step = 0; step < 3; ++step) CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(data.outputs_of(model) != before);
}

TEST_CASE("a hundred steps in a row that are left out are a failure", "[simulation]") {
  const CRun run(settings_file("hundred", nonfinite_settings()));
  auto* model = run.model("net");
  SpoiltData data(run);
  for (int step = 1; step < 100; ++step)
    REQUIRE(train_with(model, data, data.targets[0], not_a_number) == HORTATOR_NOTHING);
  CHECK(train_with(model, data, data.targets[0], not_a_number) == HORTATOR_FAILED);
  CHECK(error_has("100 training steps of the model 'net' in a row were left out"));
  CHECK(hortator_train(model, data.batch, nullptr) == HORTATOR_OK);
  CHECK(train_with(model, data, data.targets[0], not_a_number) == HORTATOR_NOTHING);
}

TEST_CASE("samples with NaN do not spoil the statistics of a buffer, also after a move", "[simulation]") {
  const CRun run(settings_file("statistics",
                               "models: {net: {type: mlp, layers: [2, 4, 1], normalize: true,"
                               " optimizer: {type: sgd, lr: 0.01}}}\n"
                               "buffers: {samples: {capacity: 32, batch_size: 4, statistics: true},"
                               " plain: {type: ring, capacity: 6, batch_size: 4}}\n"));
  auto* model = run.model("net");
  auto* samples = run.buffer("samples");
  auto* plain = run.buffer("plain");
  SpoiltData data(run);
  REQUIRE(hortator_buffer_put(samples, data.batch) == HORTATOR_OK);
  data.targets[0] = not_a_number;
  CHECK(hortator_buffer_put(samples, data.batch) == HORTATOR_NOTHING);
  std::int64_t count = 0;
  CHECK(hortator_buffer_count(samples, &count) == HORTATOR_OK);
  CHECK(count == 6);
  REQUIRE(hortator_buffer_put(plain, data.batch) == HORTATOR_OK);  // keeps no statistics
  CHECK(hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), plain, samples) != HORTATOR_FAILED);
  double loss = not_a_number;
  CHECK(hortator_buffer_train(samples, model, 3, &loss) == HORTATOR_OK);
  CHECK(std::isfinite(loss));
}

TEST_CASE("a buffer's steps with NaN are left out, and the others are made", "[simulation]") {
  const CRun run(settings_file("drawn", nonfinite_settings() +
                                            "buffers: {samples: {type: ring, capacity: 6, batch_size: 1},"
                                            " bad: {type: ring, capacity: 6, batch_size: 6}}\n"));
  auto* model = run.model("net");
  SpoiltData data(run);
  const auto before = data.outputs_of(model);
  if (is_spoilt_rank()) data.targets[3] = not_a_number;
  auto* bad = run.buffer("bad");
  REQUIRE(hortator_buffer_put(bad, data.batch) == HORTATOR_OK);
  double loss = -1;
  CHECK(hortator_buffer_train(bad, model, 4, &loss) == HORTATOR_NOTHING);
  CHECK(std::isnan(loss));
  CHECK(data.outputs_of(model) == before);
  auto* samples = run.buffer("samples");
  REQUIRE(hortator_buffer_put(samples, data.batch) == HORTATOR_OK);
  CHECK(hortator_buffer_train(samples, model, 60, nullptr) == HORTATOR_OK);
  const auto after = data.outputs_of(model);
  CHECK(after != before);
  CHECK(std::ranges::all_of(after, [](float number) { return std::isfinite(number); }));
}
