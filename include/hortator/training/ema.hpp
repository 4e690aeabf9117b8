#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <string>

namespace hortator {

class Accelerator;
namespace accelerator {
class AveragedWeights;
}

/// How the decay of an exponential moving average grows over the first updates; `n` counts them after the first.
enum class EmaWarmUp {
  none,   ///< the whole decay at once, as PyTorch's AveragedModel
  ratio,  ///< at most (1 + n) / (10 + n), as diffusers' default
  power   ///< at most 1 - (1 + n / inv_gamma)^-power, as timm's and diffusers' warm-up
};

/// Options of Ema.
struct EmaOptions {
  double decay = 0.999;  ///< the weight of the average in an update; 1 - decay is that of the model
  EmaWarmUp warm_up = EmaWarmUp::none;
  double inv_gamma = 1;
  double power = 2.0 / 3;
  double min_decay = 0;                ///< with a warm-up: at least this
  std::int64_t update_after_step = 0;  ///< until this update the average is a copy of the model
  std::int64_t update_every = 1;       ///< number of calls of update() for one average
  std::string name = "ema";            ///< of the averages in checkpoints: each Ema has its own
};

/// The decay of update number `update`, from 1. The first one copies the model.
HORTATOR_API double ema_decay(const EmaOptions& options, std::int64_t update);

/// While it lives, the model has averaged weights: Ema::use().
class HORTATOR_API EmaScope {
 public:
  explicit EmaScope(std::shared_ptr<accelerator::AveragedWeights> averages);
  /// Puts the weights that are trained back. @collective unless an exception ends the scope
  ~EmaScope() noexcept(false);
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  std::shared_ptr<accelerator::AveragedWeights> averages_;
  int exceptions_;
};

/// An exponential moving average of a prepared model's weights, which usually evaluates better than the last ones:
/// `hortator::Ema ema(accelerator, model, {.decay = 0.9999});`, then `ema.update();` after each optimizer.step(). It
/// begins as a copy of the model. Under ZeRO each rank averages its slices; 16-bit weights are averaged in fp32. Frozen
/// weights and buffers are the model's own. Checkpoints hold the averages and continue exactly, on any number of ranks
/// and at any stage: make the Ema before load_state().
class HORTATOR_API Ema {
 public:
  Ema(Accelerator& accelerator, const ModelBase& model, const EmaOptions& options = {});

  /// Averages. Does nothing in a micro-step that only accumulates, or after a step that all optimizers of the model
  /// have skipped. Call it after a captured step, not within it. UsageError within LocalSGD and within use(). Local.
  void update();
  /// Gives the model the averaged weights, to evaluate and to save_model(), as long as the result lives: `auto averaged
  /// = ema.use();`. Meanwhile optimizer steps, save_state(), load_state(), load_checkpoint_in_model() and free_memory()
  /// are refused. @collective
  [[nodiscard]] EmaScope use();
  std::int64_t updates() const;
  double decay() const;  ///< of the last update

 private:
  std::shared_ptr<accelerator::AveragedWeights> averages_;
};

}  // namespace hortator
