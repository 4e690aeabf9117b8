#pragma once

#include <hortator/training/accelerator_options.hpp>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/stopping/stopping.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "step/accelerator_session.hpp"
#include "step/gradients/accumulation.hpp"
#include "step/gradients/loss_check.hpp"
#include "step/gradients/loss_weights.hpp"
#include "step/gradients/reach_check.hpp"

namespace hortator::mpi {
class Communicator;
}
namespace hortator::parallel {
class CommonPass;
struct RankGroup;
}  // namespace hortator::parallel
namespace hortator::step {
class GradScaler;
class OptimizerCore;
class Protection;
}  // namespace hortator::step

namespace hortator::accelerator {

class Channels;
class Prepared;
class Reproducing;
class StragglerReport;

/// What decides how a training step runs: whether it averages, scales, skips or stops.
class StepControl {
 public:
  /// `options` are checked(); `prepared`, `host` and `saves` must outlive this. Call connect() before anything else.
  StepControl(const AcceleratorOptions& options, const Prepared& prepared, const mpi::Communicator& host,
              const checkpoint::BackgroundSave& saves);
  ~StepControl();
  StepControl(const StepControl&) = delete;
  StepControl& operator=(const StepControl&) = delete;

  /// Makes what runs over communicators: the common pass, the scaler of fp16 and the shards of reproducible runs.
  /// @collective
  void connect(const AcceleratorOptions& options, Channels& channels);
  /// Destroys what connect() has made. Does not communicate.
  void disconnect();
  /// Ends the session, whose handles throw from now on, and begins another with nothing accumulated or protected.
  void restart();

  Precision precision() const { return precision_; }
  const std::shared_ptr<step::AcceleratorSession>& session() const { return session_; }
  parallel::BackwardPass& backward_pass() { return backward_pass_; }
  parallel::CommonPass& common_pass() const { return *common_pass_; }
  step::Accumulation& accumulation() { return accumulation_; }
  const step::Accumulation& accumulation() const { return accumulation_; }
  step::LossCheck& loss_check() { return loss_check_; }
  step::ReachCheck& reach_check() { return reach_check_; }
  step::LossWeights& loss_weights() { return loss_weights_; }
  Stopping& stopping() { return stopping_; }
  step::GradScaler* scaler() const { return scaler_.get(); }          ///< null unless losses are scaled
  step::Protection* protection() const { return protection_.get(); }  ///< null unless the options ask for it
  StragglerReport* stragglers() const { return stragglers_.get(); }   ///< null unless the options ask for it
  Reproducing* reproducing() const { return reproducing_.get(); }     ///< null unless the options ask for it

  /// Whether the batch in the loop's body is the last before an update.
  bool sync_gradients() const;
  /// Whether gradients are those of one shard of several, which must not be clipped or unscaled yet.
  bool is_partial() const { return reproducing_ && !sync_gradients(); }
  /// Whether all ranks are here with equal replicas and no gradients wait for an update: when a run can be saved, and
  /// left.
  bool is_between_steps() const;

  /// The tensor to call backward() on: `loss`, scaled if there is a scaler.
  at::Tensor scaled(const at::Tensor& loss) const;
  /// Call before backward: gradients that wait are brought to the scale that the next ones will have.
  void expect_scaled_gradients() const;
  /// Waits for late verdicts, so that the step counts of optimizers and scaler are right.
  void settle_steps() const;
  /// Lets the scaler look after this optimizer's gradients. UsageError if another prepared one has a parameter of it.
  void scale_gradients_of(step::OptimizerCore& optimizer) const;
  /// Unscales the gradients of all optimizers that have one of these parameters.
  void unscale_gradients_of(const std::vector<at::Tensor>& parameters) const;
  /// Whether some model has other weights than those that are trained (Ema::use).
  void lend_weights(bool lent) { lent_weights_ += lent ? 1 : -1; }
  bool has_lent_weights() const { return lent_weights_ > 0; }
  /// Throws UsageError while some model has. Call it before optimizers step.
  void require_trained_weights() const;
  /// Throws UsageError, which names `call`, while some model has: the end of Ema::use() would undo what it does.
  void refuse_lent_weights(std::string_view call) const;
  /// Throws UsageError if updates are protected: in `scope` the ranks do not make the same steps.
  void refuse_protection_in(std::string_view scope) const;
  /// Checks that this backward has reached the same models on all ranks; nothing if some ranks may be missing.
  /// @collective
  void agree_on_models() const;
  /// From now on `ranks` train one replica (LocalSGD): their losses count together, and they compare passes by `pass`,
  /// which is null where they compare none. Null: all ranks again.
  void train_among(const parallel::RankGroup* ranks, parallel::CommonPass* pass) { among_ = ranks, pass_among_ = pass; }
  const parallel::RankGroup* among() const { return among_; }
  /// Takes this rank out of these comparisons: comm::Communicator::abandon.
  bool abandon_passes(std::string_view reason) const noexcept;

  /// Sets this rank's trigger.
  void set_trigger() { triggered_ = true; }
  /// Returns this rank's trigger and clears it.
  bool take_trigger() { return std::exchange(triggered_, false); }

 private:
  Precision precision_;
  const Prepared& prepared_;
  std::shared_ptr<step::AcceleratorSession> session_ = std::make_shared<step::AcceleratorSession>();
  parallel::BackwardPass backward_pass_;
  std::unique_ptr<parallel::CommonPass> common_pass_;  ///< null while ranks could not be joined
  parallel::CommonPass* pass_among_ = nullptr;
  const parallel::RankGroup* among_ = nullptr;
  step::Accumulation accumulation_;
  step::LossCheck loss_check_;
  step::ReachCheck reach_check_;
  step::LossWeights loss_weights_;
  Stopping stopping_;
  std::unique_ptr<step::GradScaler> scaler_;
  std::unique_ptr<step::Protection> protection_;
  std::unique_ptr<StragglerReport> stragglers_;
  std::unique_ptr<Reproducing> reproducing_;
  bool triggered_ = false;
  int lent_weights_ = 0;  ///< scopes
};

}  // namespace hortator::accelerator
