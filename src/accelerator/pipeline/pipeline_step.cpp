#include "accelerator/pipeline/pipeline_step.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "accelerator/pipeline/step_times.hpp"
#include "accelerator/state/random_state.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/pipeline/plain/plain_pass.hpp"
#include "parallel/pipeline/stage_pass.hpp"
#include "parallel/pipeline/work/stage_work.hpp"
#include "parallel/pipeline/work/stages_of_modules.hpp"
#include "parallel/tensor/divided_tensor.hpp"

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

/// Random numbers of a step: they depend on its micro-batches and layers, so that any number of stages draws the same.
/// Afterwards the generators have drawn one number.
class StepNumbers {
 public:
  /// @collective over the pipeline
  StepNumbers(c10::Device device, const parallel::StageRanks* stages) : device_(device) {
    {
      auto generator = at::detail::getDefaultCPUGenerator();
      const std::lock_guard lock(generator.mutex());
      key_ = at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
    }
    if (stages != nullptr) key_ = mpi::broadcast(stages->ranks.host, key_, 0);
    before_ = random_state(device);
  }
  ~StepNumbers() { restore_random_state(device_, before_); }
  StepNumbers(const StepNumbers&) = delete;
  StepNumbers& operator=(const StepNumbers&) = delete;

  void seed(int micro_batch, std::int64_t position) const {
    seed_random_state(device_, core::mix(core::mix(key_, static_cast<std::uint64_t>(micro_batch)),
                                         static_cast<std::uint64_t>(position + 1)));
  }

 private:
  c10::Device device_;
  std::uint64_t key_ = 0;
  StateDict before_;
};

/// What the last stage knows of a step, the same on all stages afterwards.
struct StepSums {
  double loss = 0, count = 0;
};

/// One batch on its way through the stages.
class PipelineRun {
 public:
  PipelineRun(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
              const PipelineStepOptions& options)
      : training_(training),
        model_(model),
        stages_(training.channels.stages()),
        batches_(batches),
        times_(options.times) {
    require_rows();
    shape_ = stages_ != nullptr ? stages_->shape : parallel::PipelineShape();
    const auto& asked = training.options().parallel.micro_batches;
    const auto wanted = options.micro_batches   ? *options.micro_batches
                        : asked.value_or(1) > 1 ? *asked
                                                : 4 * shape_.ranks;
    if (wanted < 1) {
      throw UsageError({.what = text::concat("micro_batches is ", wanted),
                        .why = "it is the number of parts into which a batch is cut",
                        .hint = "use a positive number, or leave it out"});
    }
    shape_.micro_batches = static_cast<int>(std::min(wanted, batches.rows));
    if (batches.rows < wanted) fit_small_batch();
  }

  core::Range rows_of(int micro_batch) const {
    return core::balanced(batches_.rows, shape_.micro_batches, micro_batch);
  }
  PipelineSchedule schedule() const { return stages_ != nullptr ? stages_->schedule : PipelineSchedule::one_f_one_b; }
  std::vector<parallel::StageAction> plan() const {
    return parallel::plan_rank(schedule(), shape_, stages_ != nullptr ? stages_->ranks.index() : 0);
  }

  /// Runs the plan; if one stage fails, all throw. @collective over the pipeline
  void run(const std::vector<parallel::StageAction>& plan, const std::function<at::Tensor(int)>& forward) {
    const StepNumbers numbers(training_.device(), stages_);
    const auto* map = model_.staged() != nullptr ? &model_.staged()->map() : nullptr;
    const bool is_plain = map != nullptr ? map->is_plain : !parallel::names_layers(model_.module());
    const auto route = is_plain && map != nullptr ? survey(*map) : parallel::Route();
    parallel::StageWork work(
        model_.staged() != nullptr ? stages_ : nullptr, map,
        {.forward = forward,
         .seed = [&](int micro_batch, std::int64_t position) { numbers.seed(micro_batch, position); },
         .is_plain = is_plain,
         .route = map != nullptr ? &route : nullptr,
         .whole = [](const at::Tensor& activation) { return parallel::operand_of(activation).whole(); },
         .is_alone = !has_companions(),
         .on_failure = [this] { free_companions(); }});
    if (!times_.empty()) mpi::barrier(training_.host());
    work.run(plan);
    agree(work);
    if (times_.empty()) return;
    write_times(times_, schedule(), shape_, work.times(), stages_ != nullptr ? &stages_->ranks : nullptr,
                training_.host());
  }

  /// The sums of the last stage, on all stages. @collective over the pipeline
  StepSums share(const StepSums& mine) const {
    if (stages_ == nullptr) return mine;
    std::array<double, 2> sums = {mine.loss, mine.count};
    mpi::all_reduce(stages_->ranks.host, std::span<double>(sums), MPI_SUM);
    return {.loss = sums[0], .count = sums[1]};
  }

 private:
  /// The way that the function takes with the first micro-batch. @collective over the pipeline
  parallel::Route survey(const parallel::StageMap& map) const {
    parallel::Route route;
    mpi::all_or_none(stages_->ranks.host, [&] {
      refuse_divided();
      const parallel::TensorStages tensors(model_.module(), map);
      parallel::StagePass pass({.of_model = {}}, {});
      const parallel::PassScope here(pass);
      parallel::PlainSurvey survey(tensors, shape_.stages());
      const auto rows = rows_of(0);
      batches_.compute(rows.begin, rows.end);
      route = std::move(survey).finish();
    });
    return route;
  }
  void refuse_divided() const {
    const auto& mesh = training_.channels.mesh().shape();
    for (const auto axis : {parallel::Axis::tensor, parallel::Axis::context}) {
      if (mesh.size(axis) == 1) continue;
      throw UsageError({.what = text::concat("parallel.", parallel::name_of(axis),
                                             " was set with a pipeline of a module that names no layers"),
                        .why = "its stages are found by operators on whole tensors",
                        .hint = "derive the module from hortator::HasPipelineLayers"});
    }
  }
  void require_rows() const {
    if (batches_.rows > 0) return;
    throw UsageError({.what = "A pipeline got a batch without rows",
                      .why = "it is cut along dimension 0 into micro-batches",
                      .hint = "give it a batch with at least one row"});
  }
  /// The last batch of a pass may have fewer rows than there should be micro-batches: as many as the schedule can
  /// order.
  void fit_small_batch() {
    while (stages_ != nullptr && !parallel::can_order(stages_->schedule, shape_)) --shape_.micro_batches;
  }
  bool has_companions() const {
    const auto& mesh = training_.channels.mesh().shape();
    return mesh.size(parallel::Axis::tensor) > 1 || mesh.size(parallel::Axis::context) > 1;
  }
  /// Ranks that compute the same stage together wait for this one.
  void free_companions() {
    if (has_companions()) training_.abandon("a stage of the pipeline has failed");
  }
  void agree(const parallel::StageWork& work) const {
    if (stages_ == nullptr) {
      if (work.error()) std::rethrow_exception(work.error());
      return;
    }
    parallel::agree(work, stages_->ranks.host);
  }

  Training& training_;
  step::ModelCore& model_;
  parallel::StageRanks* stages_;
  const detail::MicroBatches& batches_;
  std::filesystem::path times_;
  parallel::PipelineShape shape_;
};

void require_supported(const Training& training, const step::ModelCore& model) {
  model.check_alive();
  const auto refuse = [](const char* what, const char* why) {
    throw UsageError({.what = text::concat("pipeline_step() was called ", what), .why = why});
  };
  if (training.control.session()->recording() != nullptr)
    refuse("in a captured step", "messages between stages cannot be recorded");
  if (training.control.reproducing() != nullptr)
    refuse("with reproducible = true", "its sums are over samples, in an order of their own");
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

/// The whole batch's step: `divide` is what losses are divided by. Returns the sums over the micro-batches.
StepSums compute(Training& training, step::ModelCore& model, const detail::MicroBatches& batches, PipelineRun& run,
                 double divide) {
  StepSums mine;
  const Paused here(model);
  std::vector<at::Tensor> losses, counts;
  run.run(run.plan(), [&](int micro_batch) {
    const auto rows = run.rows_of(micro_batch);
    const auto result = checked(batches.compute(rows.begin, rows.end), batches.has_counts);
    const auto share = static_cast<double>(rows.size()) / static_cast<double>(batches.rows);
    const auto weight = batches.has_counts ? 1 : share;
    losses.push_back(result.loss.detach().to(at::kDouble).reshape({}) * weight);
    if (batches.has_counts) counts.push_back(result.count.detach().to(at::kCPU, at::kDouble).reshape({}));
    return training.control.scaled(result.loss.reshape({}) * (weight / divide));
  });
  for (const auto& loss : losses) mine.loss += loss.item<double>();
  for (const auto& count : counts) mine.count += count.item<double>();
  return run.share(mine);
}

/// Averages, checks and counts the gradients that the micro-batches have left. @collective
void complete(Training& training, step::ModelCore& model, const step::GivenLoss& given) {
  refuse_sparse(model);
  if (model.staged() != nullptr && !model.reducer().is_paused()) {
    const parallel::PartsOnly each_rank_has;
    model.staged()->add_shared_gradients();
  }
  torch::autograd::variable_list reached;
  for (const auto& parameter : model.own_parameters()) {
    if (parameter.grad().defined()) reached.push_back(parameter);
  }
  const auto loss = given.loss.item<double>();
  const auto end =
      reached.empty() ? at::full({}, loss).requires_grad_() : ReachAgain::apply(at::TensorList(reached), loss);
  training.backward(end, given, /*retain_graph=*/false);
}

at::Tensor scalar(double value) { return at::full({}, value, at::kDouble); }

}  // namespace

at::Tensor pipeline_step(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                         const PipelineStepOptions& options) {
  require_supported(training, model);
  auto& control = training.control;
  PipelineRun run(training, model, batches, options);
  control.expect_scaled_gradients();
  const auto averaged = at::empty({0}, at::TensorOptions().device(training.device()));
  if (!batches.has_counts) {
    StepSums sums;
    const auto steps = static_cast<double>(control.accumulation().steps());
    control.loss_weights().run_plain({}, [&](const at::Tensor&) {
      sums = compute(training, model, batches, run, steps);
      complete(training, model, {.loss = scalar(sums.loss)});
    });
    return scalar(sums.loss);
  }
  StepSums sums;
  control.loss_weights().run_late(static_cast<double>(batches.rows), control.sync_gradients(),
                                  training.averaging().communicator_of(averaged), training.device(),
                                  [&](double divisor) {
                                    sums = compute(training, model, batches, run, divisor);
                                    complete(training, model, {.loss = scalar(sums.loss), .count = scalar(sums.count)});
                                    return scalar(sums.count).to(training.device());
                                  });
  return scalar(sums.count > 0 ? sums.loss / sums.count : 0);
}

at::Tensor pipeline_forward(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                            const PipelineStepOptions& options) {
  require_supported(training, model);
  if (!options.times.empty())
    throw UsageError({.what = "pipeline_forward() got a file for times",
                      .why = "times are those of a whole step",
                      .hint = "give it to pipeline_step()"});
  const at::NoGradGuard no_grad;
  PipelineRun run(training, model, batches, options);
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
