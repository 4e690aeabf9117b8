// Training over sequences that are divided between two ranks, with other features, against one rank.
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "one_rank.hpp"
#include "unit/accelerator/tensor/tensor_models.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::on_first;

namespace {

constexpr auto infinite = std::numeric_limits<float>::infinity();

/// Whole sequences of a step; the losses of their tokens are weighted.
struct Texts {
  explicit Texts(std::int64_t step, std::int64_t length) {
    const test::TokenRows rows(step, 0, 1, length);
    ids = rows.ids;
    targets = rows.targets.view(ids.sizes());
    weights = at::ones(ids.sizes());
  }
  std::vector<SequenceBuffer> buffers() { return {{&ids, 1}, {&targets, 1}, {&weights, 1}}; }
  at::Tensor sum_of(const at::Tensor& logits) const {
    const auto losses = at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {}, at::Reduction::None);
    return (losses * weights.flatten()).sum();
  }
  at::Tensor ids, targets, weights;
};

AcceleratorOptions on_two(AcceleratorOptions options, ContextAttention attention = ContextAttention::gather) {
  options.parallel.context = 2;
  options.parallel.context_attention = attention;
  return options;
}

struct Run {
  explicit Run(const AcceleratorOptions& options) : accelerator(options) {}

  /// One batch. Returns the mean loss of all tokens.
  double learn(Texts texts, bool by_counts = false) {
    const auto micro_step = accelerator.accumulate(model);
    const auto divided = accelerator.maybe_context_parallel(texts.buffers());
    const auto sum = texts.sum_of(model(models::ModelInputs{.input_ids = texts.ids}).logits);
    const auto count = static_cast<double>(texts.ids.numel());
    by_counts ? accelerator.backward(sum, count) : accelerator.backward(sum / count);
    optimizer.step();
    optimizer.zero_grad();
    const auto all = accelerator.reduce(at::stack({sum.detach(), at::full({}, count)}));
    return (all[0] / all[1]).item<double>();
  }
  void end(std::vector<double>& numbers) { append_weights(numbers, accelerator, model); }

  Accelerator accelerator;
  std::shared_ptr<models::PretrainedModel> net = test::tensor_model("llama");
  torch::optim::SGD sgd{net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  Model<models::PretrainedModel> model = accelerator.prepare(*net);
  Optimizer optimizer = accelerator.prepare(sgd);
};

}  // namespace

TEST_CASE("micro-steps over divided sequences add up as those of whole ones, as means and as sums with counts") {
  for (const bool by_counts : {false, true}) {
    const auto scenario = [&](const AcceleratorOptions& options) {
      Run run(options);
      std::vector<double> numbers;
      for (int step = 0; step < 6; ++step) {
        const std::int64_t length = by_counts ? 7 + step % 2 : 8;  // 7: ranks have different numbers of tokens
        numbers.push_back(run.learn(Texts(step, length), by_counts));
      }
      run.end(numbers);
      return numbers;
    };
    INFO("by counts: " << by_counts);
    const auto expected = on_first(1, scenario, {.gradient_accumulation_steps = 2});
    for (const int stage : {0, 2}) {
      INFO("stage " << stage);
      check_near(scenario(on_two({.gradient_accumulation_steps = 2, .zero = {.stage = stage}})), expected);
    }
  }
}

TEST_CASE("a loss that is not finite, or a spike, on one rank's tokens skips the update on all ranks") {
  const auto scenario = [](const AcceleratorOptions& options) {
    Run run(options);
    run.sgd.param_groups().front().options().set_lr(0.01);
    std::vector<double> numbers;
    for (int step = 0; step < 26; ++step) {
      Texts texts(step % 2, 8);
      if (step == 4) texts.weights[1][2] = infinite;
      if (step == 23) texts.weights.narrow(1, 1, 1).fill_(200);
      const auto loss = run.learn(texts);
      if (step != 4 && step != 23) numbers.push_back(loss);
      INFO("step " << step);
      CHECK(run.optimizer.step_was_skipped() == (step == 4 || step == 23));
    }
    run.end(numbers);
    return numbers;
  };
  const AcceleratorOptions options{.protection = {.on_nonfinite = OnNonfinite::skip, .loss_spike_factor = 3}};
  const auto expected = on_first(1, scenario, options);
  check_near(scenario(on_two(options)), expected);
}

TEST_CASE("fp16 with a scaler trains over divided sequences, and an overflow on one rank's tokens skips on all") {
  const auto scenario = [](const AcceleratorOptions& options) {
    Run run(options);
    std::vector<double> numbers;
    for (int step = 0; step < 8; ++step) {
      Texts texts(step % 2, 8);
      if (step == 3) texts.weights[1][2] = infinite;
      const auto loss = run.learn(texts);
      if (step != 3) numbers.push_back(loss);
      INFO("step " << step);
      CHECK(run.accelerator.optimizer_step_was_skipped() == (step == 3));
    }
    return numbers;
  };
  AcceleratorOptions options{.mixed_precision = Precision::fp16};
  options.grad_scaler.init_scale = 64;
  const auto expected = on_first(1, scenario, options);
  for (const auto attention : {ContextAttention::gather, ContextAttention::ring})
    check_near(scenario(on_two(options, attention)), expected, 0.01);
}

TEST_CASE("offloaded parameters attend over divided sequences as those in memory") {
  const State state;
  const test::Folder folder(state, "pairs_context_offload");
  enum class Placement { memory, sharded_on_disk, on_disk };
  auto placement = Placement::memory;
  const auto scenario = [&](AcceleratorOptions options) {
    if (placement == Placement::sharded_on_disk) options.zero = {.stage = 3, .offload_parameters = folder.path()};
    Run run(options);
    std::optional<Offload> offload;
    if (placement == Placement::on_disk) offload.emplace(disk_offload(*run.net, folder.path(), {.page_bytes = 4096}));
    std::vector<double> numbers;
    for (int step = 0; step < 4; ++step) numbers.push_back(run.learn(Texts(step, 8)));
    offload.reset();
    run.end(numbers);
    return numbers;
  };
  const auto expected = on_first(1, scenario);
  for (const auto attention : {ContextAttention::gather, ContextAttention::ring}) {
    for (const auto where : {Placement::sharded_on_disk, Placement::on_disk}) {
      INFO("ring " << (attention == ContextAttention::ring) << ", disk_offload " << (where == Placement::on_disk));
      placement = where;
      check_near(scenario(on_two({}, attention)), expected);
    }
  }
}
