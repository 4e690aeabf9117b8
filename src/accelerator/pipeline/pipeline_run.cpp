#include "accelerator/pipeline/pipeline_run.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <span>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/pipeline/step_numbers.hpp"
#include "accelerator/pipeline/step_times.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "observe/operators/step_recording.hpp"
#include "parallel/pipeline/plain/plain_pass.hpp"
#include "parallel/pipeline/stage_pass.hpp"
#include "parallel/pipeline/work/stages_of_modules.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "step/gradients/protection.hpp"

namespace hortator::accelerator {
namespace {

void require_loader(const Reproducing& reproducing, const PipelineStepOptions& options) {
  if (options.micro_batches) {
    throw UsageError({.what = text::concat("pipeline_step() got micro_batches = ", *options.micro_batches),
                      .why = "with reproducible = true a micro-batch is a virtual shard, on any number of ranks",
                      .hint = "leave micro_batches out, and set AcceleratorOptions::virtual_shards for more of them"});
  }
  if (reproducing.is_in_step()) return;
  throw UsageError({.what = "pipeline_step() was called outside of a loop over a prepared loader",
                    .why = "with reproducible = true the loader's batches are the shards of a step",
                    .hint = "give the loader to prepare(), and call pipeline_step() for each of its batches"});
}

/// What random numbers of a micro-batch depend on in a reproducible run: its shard.
StepNumbers::Keys keys_of(const Reproducing* reproducing, bool trains) {
  if (reproducing == nullptr) return {};
  return [reproducing, trains](int micro_batch) { return reproducing->key_of(micro_batch, trains); };
}

}  // namespace

PipelineRun::PipelineRun(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
                         const PipelineStepOptions& options, PipelinePass pass)
    : training_(training),
      model_(model),
      stages_(training.channels.stages()),
      batches_(batches),
      times_(options.times),
      trains_(pass == PipelinePass::step),
      shape_(stages_ != nullptr ? stages_->shape : parallel::PipelineShape()) {
  require_rows();
  training.control.reproducing() != nullptr ? cut_into_shards(options) : cut_as_asked(options);
}

// The last batch of a pass may have fewer rows than there should be micro-batches: as many as the schedule can order.
void PipelineRun::cut_as_asked(const PipelineStepOptions& options) {
  const auto& asked = training_.options().parallel.micro_batches;
  const auto wanted = options.micro_batches   ? *options.micro_batches
                      : asked.value_or(1) > 1 ? *asked
                                              : 4 * shape_.ranks;
  if (wanted < 1) {
    throw UsageError({.what = text::concat("micro_batches is ", wanted),
                      .why = "it is the number of parts into which a batch is cut",
                      .hint = "use a positive number, or leave it out"});
  }
  shape_.micro_batches = static_cast<int>(std::min(wanted, batches_.rows));
  if (batches_.rows >= wanted || stages_ == nullptr) return;
  while (!parallel::can_order(stages_->schedule, shape_)) --shape_.micro_batches;
}

// The shards of the batch, which a loader has joined. A batch of its own is computed as it is.
void PipelineRun::cut_into_shards(const PipelineStepOptions& options) {
  const auto& reproducing = *training_.control.reproducing();
  const bool is_of_loader = training_.prepared.active_loader() != nullptr;
  if (trains_) require_loader(reproducing, options);
  const auto count = is_of_loader ? reproducing.joined() : options.micro_batches.value_or(1);
  if (count < 1 || batches_.rows % count != 0) {
    throw UsageError({.what = text::concat("A batch of ", text::count(static_cast<int>(batches_.rows), "row"),
                                           " cannot be cut into ", count, " equal micro-batches"),
                      .why = "with reproducible = true they are the shards of a step, which have one size",
                      .hint = "use the whole batches of a prepared loader"});
  }
  shape_.micro_batches = static_cast<int>(count);
}

// Each micro-batch is a shard of the step, with buffers and gradients of its own.
void PipelineRun::take_shards(parallel::MicroBatchWork& work) {
  auto& shards = training_.control.reproducing()->shards();
  shards.begin_pipeline(model_);
  work.begin = [this, &shards](const parallel::StageAction& action) {
    if (training_.recording)
      training_.recording->begin_part(training_.control.reproducing()->shard_of(action.micro_batch));
    if (action.kind == parallel::StageAction::Kind::forward) shards.begin_stage(model_);
  };
  work.end_forward = [this, &shards](int stage, int micro_batch, const parallel::StageTensors& results) {
    shards.end_stage(model_, stage, micro_batch, results);
  };
  work.end_backward = [this, &shards](int stage, int micro_batch) {
    const Unrecorded bookkeeping(training_.recording != nullptr);
    shards.take_stage(model_, stage, micro_batch);
  };
}

core::Range PipelineRun::rows_of(int micro_batch) const {
  return core::balanced(batches_.rows, shape_.micro_batches, micro_batch);
}

double PipelineRun::weight_of(int micro_batch) const {
  if (batches_.has_counts) return 1;
  return static_cast<double>(rows_of(micro_batch).size()) / static_cast<double>(batches_.rows);
}

double PipelineRun::mean_of(const std::vector<double>& losses) const {
  double mean = 0;
  for (int i = 0; i < shape_.micro_batches; ++i) mean += losses.at(static_cast<std::size_t>(i)) * weight_of(i);
  return mean;
}

PipelineSchedule PipelineRun::schedule() const {
  return stages_ != nullptr ? stages_->schedule : PipelineSchedule::one_f_one_b;
}

std::vector<parallel::StageAction> PipelineRun::plan() const {
  return parallel::plan_rank(schedule(), shape_, stages_ != nullptr ? stages_->ranks.index() : 0);
}

void PipelineRun::run(const std::vector<parallel::StageAction>& plan, const std::function<at::Tensor(int)>& forward) {
  const auto* const reproducing = training_.control.reproducing();
  const StepNumbers numbers(training_.device(), stages_, keys_of(reproducing, trains_));
  const auto* map = model_.staged() != nullptr ? &model_.staged()->map() : nullptr;
  const bool is_plain = map != nullptr ? map->is_plain : !parallel::names_layers(model_.module());
  const auto route = is_plain && map != nullptr ? survey(*map) : parallel::Route();
  parallel::MicroBatchWork micro_batches = {
      .forward = forward,
      .seed = [&](int micro_batch, std::int64_t position) { numbers.seed(micro_batch, position); },
      .is_plain = is_plain,
      .route = map != nullptr ? &route : nullptr,
      .whole = [](const at::Tensor& activation) { return parallel::operand_of(activation).whole(); },
      .is_alone = !has_companions(),
      .on_failure = [this] { free_companions(); }};
  if (reproducing != nullptr && trains_) take_shards(micro_batches);
  parallel::StageWork work(model_.staged() != nullptr ? stages_ : nullptr, map, std::move(micro_batches));
  if (!times_.empty()) mpi::barrier(training_.host());
  work.run(plan);
  agree(work);
  if (times_.empty()) return;
  write_times(times_, schedule(), shape_, work.times(), stages_ != nullptr ? &stages_->ranks : nullptr,
              training_.host());
}

StepLosses PipelineRun::share(StepLosses mine) const {
  if (stages_ == nullptr) return mine;
  for (auto* numbers : {&mine.losses, &mine.counts}) {
    if (numbers == &mine.counts && !batches_.has_counts) continue;
    numbers->resize(static_cast<std::size_t>(shape_.micro_batches));  // others have none
    mpi::all_reduce(stages_->ranks.host, std::span<double>(*numbers), mpi::Op::sum);
  }
  return mine;
}

// The way that the function takes with the first micro-batch. @collective over the pipeline
parallel::Route PipelineRun::survey(const parallel::StageMap& map) const {
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

void PipelineRun::refuse_divided() const {
  const auto& mesh = training_.channels.mesh().shape();
  for (const auto axis : {parallel::Axis::tensor, parallel::Axis::context}) {
    if (mesh.size(axis) == 1) continue;
    throw UsageError({.what = text::concat("parallel.", parallel::name_of(axis),
                                           " was set with a pipeline of a module that names no layers"),
                      .why = "its stages are found by operators on whole tensors",
                      .hint = "derive the module from hortator::HasPipelineLayers"});
  }
}

void PipelineRun::require_rows() const {
  if (batches_.rows > 0) return;
  throw UsageError({.what = "A pipeline got a batch without rows",
                    .why = "it is cut along dimension 0 into micro-batches",
                    .hint = "give it a batch with at least one row"});
}

bool PipelineRun::has_companions() const {
  const auto& mesh = training_.channels.mesh().shape();
  return mesh.size(parallel::Axis::tensor) > 1 || mesh.size(parallel::Axis::context) > 1;
}

// Ranks that compute the same stage together wait for this one.
void PipelineRun::free_companions() {
  if (has_companions()) training_.abandon("a stage of the pipeline has failed");
}

void PipelineRun::agree(const parallel::StageWork& work) const {
  if (stages_ == nullptr) {
    if (work.error()) std::rethrow_exception(work.error());
    return;
  }
  parallel::agree(work, stages_->ranks.host);
}

}  // namespace hortator::accelerator
