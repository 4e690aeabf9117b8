#include "accelerator/pipeline/pipeline_step.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <iterator>
#include <utility>
#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/pipeline/pipeline_run.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "parallel/pipeline/work/stages_of_modules.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "step/gradients/protection.hpp"

namespace hortator::accelerator {
namespace {

/// The loss of the whole batch, whose backward adds zeros to gradients that are there: what happens to complete
/// gradients then happens.
struct ReachAgain : torch::autograd::Function<ReachAgain> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::TensorList parameters, double loss) {
    const parallel::PartsOnly each_rank_has;
    std::vector<at::Tensor> zeros;
    for (const auto& parameter : parameters)
      zeros.push_back(at::zeros({1}, parameter.options().requires_grad(false)).expand(parameter.sizes()));
    context->saved_data["zeros"] = zeros;
    return at::full({}, loss, parameters.front().options().dtype(at::kFloat).requires_grad(false));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& /*gradients*/) {
    auto zeros = context->saved_data["zeros"].toTensorVector();
    zeros.emplace_back();  // of the loss
    return zeros;
  }
};

void refuse_sparse(const step::ModelCore& model) {
  for (const auto& [name, parameter] : model.parameters()) {
    if (!parameter.grad().defined() || !parameter.grad().is_sparse()) continue;
    throw UsageError({.what = text::concat("The gradient of ", text::quote(name), " is sparse"),
                      .why = "a pipeline adds up the gradients of micro-batches",
                      .hint = "make the embedding without the option sparse"});
  }
}

/// Keeps gradients on their rank while it lives.
class Paused {
 public:
  explicit Paused(step::ModelCore& model) : model_(model) { model_.reducer().pause(); }
  ~Paused() { model_.reducer().resume(); }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  step::ModelCore& model_;
};

void require_supported(const Training& training, const step::ModelCore& model) {
  model.check_alive();
  const auto refuse = [](const char* what, const char* why) {
    throw UsageError({.what = text::concat("pipeline_step() was called ", what), .why = why});
  };
  if (training.control.session()->recording() != nullptr)
    refuse("in a captured step", "messages between stages cannot be recorded");
  if (model.scatters_gradients())
    refuse("with zero.stage 2 or 3", "gradients are sharded after each backward pass; use backward(), or stage 1");
  if (model.may_lack_ranks()) refuse("within join_uneven_inputs", "all stages must take part in each step");
}

detail::MicroLoss checked(detail::MicroLoss result, bool has_counts) {
  if (result.loss.defined() && result.loss.numel() == 1 && (!has_counts || result.count.numel() == 1)) return result;
  throw UsageError({.what = "The function of pipeline_step() returned no loss of one number",
                    .why = "backward begins with it",
                    .hint = "return the mean of the micro-batch's losses, or a pair of their sum and their count"});
}

/// What the losses of micro-batches are multiplied by and divided by before backward.
struct LossScales {
  double divide = 1;
  bool adds_shards = false;  ///< each micro-batch has the loss of a batch of its own
};

/// The whole batch's step.
StepLosses compute(Training& training, step::ModelCore& model, const detail::MicroBatches& batches, PipelineRun& run,
                   const LossScales& scales) {
  const Paused here(model);
  std::vector<at::Tensor> losses, counts;
  run.run(run.plan(), [&](int micro_batch) {
    const auto rows = run.rows_of(micro_batch);
    const auto result = checked(batches.compute(rows.begin, rows.end), batches.has_counts);
    losses.push_back(result.loss.detach().to(at::kDouble).reshape({}));
    if (batches.has_counts) counts.push_back(result.count.detach().to(at::kCPU, at::kDouble).reshape({}));
    const auto loss = result.loss.reshape({});
    if (scales.adds_shards) return training.control.scaled(scales.divide == 1 ? loss : loss / scales.divide);
    return training.control.scaled(loss * (run.weight_of(micro_batch) / scales.divide));
  });
  StepLosses mine;
  for (const auto& loss : losses) mine.losses.push_back(loss.item<double>());
  for (const auto& count : counts) mine.counts.push_back(count.item<double>());
  return run.share(std::move(mine));
}

/// The smallest parameter of this rank, whose gradient shows that a step has reached the model.
torch::autograd::variable_list smallest_of(const std::vector<at::Tensor>& parameters) {
  const auto smallest = std::ranges::min_element(parameters, {}, [](const auto& one) { return one.numel(); });
  return smallest == parameters.end() ? torch::autograd::variable_list() : torch::autograd::variable_list{*smallest};
}

/// Averages, checks and counts the gradients that the micro-batches have left. @collective
void complete(Training& training, step::ModelCore& model, const step::GivenLoss& given) {
  auto* const reproducing = training.control.reproducing();
  const Unrecorded bookkeeping(reproducing != nullptr && training.recording != nullptr);
  if (model.staged() != nullptr) {  // only one stage has an embedding
    mpi::all_or_none(training.channels.stages()->ranks.host, [&] { refuse_sparse(model); });
  } else {
    refuse_sparse(model);
  }
  if (reproducing == nullptr && model.staged() != nullptr && !model.reducer().is_paused()) {
    const parallel::PartsOnly each_rank_has;
    model.staged()->add_shared_gradients();
  }
  torch::autograd::variable_list reached;
  if (reproducing != nullptr) {
    reached = smallest_of(model.own_parameters());
  } else {
    std::ranges::copy_if(model.own_parameters(), std::back_inserter(reached),
                         [](const auto& parameter) { return parameter.grad().defined(); });
  }
  const auto loss = given.loss.item<double>();
  const auto end =
      reached.empty() ? at::full({}, loss).requires_grad_() : ReachAgain::apply(at::TensorList(reached), loss);
  training.backward(end, given, /*retain_graph=*/false,
                    /*may_reach_none=*/model.staged() != nullptr && reached.empty());
}

/// Drops what complete() has left in a reproducible run: the gradients of shards have been taken before.
void drop_marks(const Training& training, const step::ModelCore& model) {
  if (training.control.reproducing() == nullptr) return;
  for (const auto& parameter : smallest_of(model.own_parameters())) parameter.mutable_grad().reset();
}

at::Tensor scalar(double value) { return c10::scalar_to_tensor(value); }  // without an operator that is recorded

at::Tensor column(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

}  // namespace

at::Tensor pipeline_step(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                         const PipelineStepOptions& options) {
  require_supported(training, model);
  auto& control = training.control;
  PipelineRun run(training, model, batches, options, PipelinePass::step);
  control.expect_scaled_gradients();
  const bool adds_shards = control.reproducing() != nullptr;
  const auto averaged = at::empty({0}, at::TensorOptions().device(training.device()));
  StepLosses losses;
  if (!batches.has_counts) {
    const auto steps = static_cast<double>(control.accumulation().steps());
    double mean = 0;
    control.loss_weights().run_plain({}, [&](const at::Tensor&) {
      losses = compute(training, model, batches, run, {.divide = steps, .adds_shards = adds_shards});
      mean = run.mean_of(losses.losses);
      complete(training, model, {.loss = scalar(mean)});
    });
    drop_marks(training, model);
    if (options.losses != nullptr) *options.losses = column(losses.losses);
    return scalar(mean);
  }
  const auto expected = static_cast<double>(adds_shards ? run.rows_of(0).size() : batches.rows);
  control.loss_weights().run_late(
      expected, control.sync_gradients(), training.averaging().communicator_of(averaged), training.device(),
      [&](double divisor) {
        losses = compute(training, model, batches, run, {.divide = divisor, .adds_shards = adds_shards});
        complete(training, model, {.loss = scalar(losses.loss()), .count = scalar(losses.count())});
        return scalar(losses.count()).to(training.device());
      });
  drop_marks(training, model);
  if (options.losses != nullptr) *options.losses = at::stack({column(losses.losses), column(losses.counts)}, 1);
  return scalar(losses.count() > 0 ? losses.loss() / losses.count() : 0);
}

at::Tensor pipeline_forward(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                            const PipelineStepOptions& options) {
  require_supported(training, model);
  if (!options.times.empty())
    throw UsageError({.what = "pipeline_forward() got a file for times",
                      .why = "times are those of a whole step",
                      .hint = "give it to pipeline_step()"});
  const at::NoGradGuard no_grad;
  PipelineRun run(training, model, batches, options, PipelinePass::forward_only);
  auto plan = run.plan();
  std::erase_if(plan, [](const auto& action) { return action.kind != parallel::StageAction::Kind::forward; });
  std::vector<at::Tensor> results;
  run.run(plan, [&](int micro_batch) {
    const auto rows = run.rows_of(micro_batch);
    results.push_back(batches.compute(rows.begin, rows.end).loss);
    return at::Tensor();
  });
  auto joined = results.empty() ? at::Tensor() : at::cat(results);
  const auto* stages = training.channels.stages();
  if (stages == nullptr) return joined;
  return parallel::from_last(joined, stages->ranks, training.device());
}

}  // namespace hortator::accelerator
