#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <hortator/models/model.hpp>
#include <optional>
#include <utility>

#include "axes.hpp"
#include "loss_log.hpp"
#include "options.hpp"

namespace example {

/// Options of a fine-tuning run.
struct FineTuningOptions {
  std::int64_t zero = 0, checkpoint_every = 0, stop_after = 0;
  Axes axes = {};
  bool cpu = false;
  std::filesystem::path run_dir;

  /// --zero, --tensor, --checkpoint-every, --stop-after, --cpu and --run-dir
  static FineTuningOptions parse(Options& options);
};

/// The steps of all runs; the number of ranks may change between them, and with it the steps of an epoch.
struct StepCount {
  std::int64_t done = 0;
  void save(hortator::StateWriter& out) const { out.put("done", done); }
  void load(const hortator::StateReader& in) { done = in.get<std::int64_t>("done"); }
};

/// What a fine-tuning example does beside its steps: it resumes, writes loss.csv and checkpoints, and saves the model.
class FineTuning {
 public:
  FineTuning(hortator::Accelerator& accelerator, FineTuningOptions options)
      : accelerator_(accelerator), options_(std::move(options)) {
    accelerator_.register_for_checkpointing("fine_tuning", steps_);
  }

  /// Loads the newest checkpoint, if there is one. Call it after prepare(). @collective
  template <typename Loader>
  void resume(const Loader& loader) {
    if (accelerator_.has_checkpoint()) {
      accelerator_.load_state();
      accelerator_.print("resumes in epoch ", loader.epoch(), " behind step ", steps_.done);
    }
    begin_log();
  }

  /// Ends a step: logs the mean of the ranks' losses, and saves the run when that is due. Returns true if the run has
  /// to stop here; it has been saved. @collective
  bool finish_step(const at::Tensor& loss, double learning_rate);

  /// Writes the folder of the trained model, which from_pretrained() reads. @collective
  template <typename Model>
  void save(Model& model, const hortator::models::PretrainedModel& net) {
    accelerator_.save_model(model, options_.run_dir / "model");
    save_config(net);
    accelerator_.end_training();
  }

 private:
  void begin_log();
  void save_config(const hortator::models::PretrainedModel& net);

  hortator::Accelerator& accelerator_;
  FineTuningOptions options_;
  std::optional<LossLog> log_ = {};  ///< of the main process
  StepCount steps_ = {};
  std::int64_t first_step_ = 0;  ///< of this run
};

}  // namespace example
