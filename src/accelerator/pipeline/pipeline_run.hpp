#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <hortator/detail/micro_batches.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <numeric>
#include <vector>

#include "parallel/pipeline/plain/route.hpp"
#include "parallel/pipeline/work/stage_work.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// What the last stage knows of each micro-batch, the same on all stages afterwards.
struct StepLosses {
  std::vector<double> losses = {}, counts = {};

  double loss() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
  double count() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }
};

enum class PipelinePass { step, forward_only };

/// One batch on its way through the stages of a pipeline, or through a whole model on one rank.
class PipelineRun {
 public:
  /// Cuts the batch into micro-batches. All arguments but `options` must outlive this.
  PipelineRun(Training& training, step::ModelCore& model, const detail::MicroBatches& batches,
              const PipelineStepOptions& options, PipelinePass pass);

  core::Range rows_of(int micro_batch) const;
  /// The part of the batch's mean that a micro-batch's mean is; sums are added as they are.
  double weight_of(int micro_batch) const;
  double mean_of(const std::vector<double>& losses) const;
  std::vector<parallel::StageAction> plan() const;

  /// Runs the plan; if one stage fails, all throw. @collective over the pipeline
  void run(const std::vector<parallel::StageAction>& plan, const std::function<at::Tensor(int)>& forward);
  /// The losses of the last stage, on all stages. @collective over the pipeline
  StepLosses share(StepLosses mine) const;

 private:
  void cut_as_asked(const PipelineStepOptions& options);
  void cut_into_shards(const PipelineStepOptions& options);
  void take_shards(parallel::MicroBatchWork& work);
  PipelineSchedule schedule() const;
  parallel::Route survey(const parallel::StageMap& map) const;
  void refuse_divided() const;
  void require_rows() const;
  bool has_companions() const;
  void free_companions();
  void agree(const parallel::StageWork& work) const;

  Training& training_;
  step::ModelCore& model_;
  parallel::StageRanks* stages_;
  const detail::MicroBatches& batches_;
  std::filesystem::path times_;
  bool trains_;
  parallel::PipelineShape shape_;
};

}  // namespace hortator::accelerator
