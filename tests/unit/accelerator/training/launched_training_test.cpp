// What the launcher asks for by variables takes effect in a training: clipping and recomputation.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstdlib>
#include <hortator/error.hpp>
#include <hortator/hortator.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;

namespace {

class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~SetVariable() { unsetenv(name_); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* name_;
};

struct Course {
  std::vector<float> weights = {};
  std::vector<float> norms = {};  ///< of the clipped gradients, where the program clips
};

void append(std::vector<float>& to, const at::Tensor& tensor) {
  const auto values = tensor.detach().to(at::kFloat).contiguous();
  to.insert(to.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
}

// Trains for ten updates of two micro-steps; the program clips to `max_norm` unless it is 0.
Course train(const AcceleratorOptions& options, double max_norm) {
  Accelerator accelerator(options);
  set_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.05));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  set_seed(7, {.device_specific = true});
  Course course;
  for (int i = 0; i < 20; ++i) {
    const auto micro_step = accelerator.accumulate(model);
    const auto loss = at::mse_loss(model(at::randn({16, 4})), at::randn({16, 1}) * 10);
    accelerator.backward(loss);
    if (max_norm > 0 && accelerator.sync_gradients())
      append(course.norms, accelerator.clip_grad_norm_(model.parameters(), max_norm));
    optimizer.step();
    optimizer.zero_grad();
  }
  const auto whole = accelerator.summon_full_parameters(model);
  for (const auto& parameter : net->parameters()) append(course.weights, parameter);
  accelerator.wait_for_everyone();
  return course;
}

}  // namespace

TEST_CASE("HORTATOR_GRADIENT_CLIPPING clips as the program would, at every stage and in every precision") {
  for (const auto& options :
       std::vector<AcceleratorOptions>{{.gradient_accumulation_steps = 2},
                                       {.gradient_accumulation_steps = 2, .zero = {.stage = 1}},
                                       {.gradient_accumulation_steps = 2, .zero = {.stage = 2}},
                                       {.gradient_accumulation_steps = 2, .zero = {.stage = 3}},
                                       {.mixed_precision = Precision::fp16, .gradient_accumulation_steps = 2},
                                       {.mixed_precision = Precision::bf16, .gradient_accumulation_steps = 2}}) {
    INFO("stage " << options.zero.stage.value_or(0));
    const auto by_program = train(options, 0.125);
    const auto unclipped = train(options, 0);
    const SetVariable variable("HORTATOR_GRADIENT_CLIPPING", "0.125");
    CHECK(train(options, 0).weights == by_program.weights);
    CHECK(unclipped.weights != by_program.weights);
    CHECK(by_program.norms.back() > 0.125F);  // the first one of fp16 overflows
  }
}

TEST_CASE("ranks that ask for different clipping are an error on all of them") {
  const State state;
  const SetVariable variable("HORTATOR_GRADIENT_CLIPPING", state.process_index() == 0 ? "1" : "2");
  if (state.num_processes() == 1) {
    CHECK_NOTHROW(Accelerator());
  } else {
    CHECK_THROWS_WITH(Accelerator(),
                      ContainsSubstring("differs between ranks") && ContainsSubstring("HORTATOR_GRADIENT_CLIPPING"));
  }
  const SetVariable wrong("HORTATOR_GRADIENT_CLIPPING", state.process_index() == 0 ? "x" : "2");
  CHECK_THROWS_WITH(Accelerator(),
                    ContainsSubstring("HORTATOR_GRADIENT_CLIPPING: expected a number from 0, or auto, got 'x'"));
}

TEST_CASE("HORTATOR_RECOMPUTE_LAYERS recomputes layers of the prepared model, with the same gradients") {
  const auto plain = train({}, 0);
  for (const auto* layers : {"all", "Linear", "Linear,Tanh"}) {
    const SetVariable variable("HORTATOR_RECOMPUTE_LAYERS", layers);
    CHECK(train({}, 0).weights == plain.weights);
  }
  const SetVariable variable("HORTATOR_RECOMPUTE_LAYERS", "Linear");
  Accelerator accelerator;
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Tanh());
  auto model = accelerator.prepare(net);
  CHECK(net->ptr(0)->name().find("RecomputedLayer") != std::string::npos);
  CHECK(net->ptr(1)->name().find("RecomputedLayer") == std::string::npos);
  torch::nn::Linear alone(4, 4);
  CHECK_THROWS_WITH(accelerator.prepare(alone), ContainsSubstring("HORTATOR_RECOMPUTE_LAYERS: ") &&
                                                    ContainsSubstring("no layer of a Sequential matches 'Linear'"));
}
