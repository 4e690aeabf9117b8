#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/step_signals.hpp"

namespace hortator::parallel {

/// One model's backward passes, from the first gradient that arrives to the reduced gradients. How gradients travel is
/// the derived class's: whole (GradientReducer) or as shards (GradientScatter).
class GradientPass {
 public:
  GradientPass(const GradientPass&) = delete;
  GradientPass& operator=(const GradientPass&) = delete;

  /// Completes the pass after backward. Does nothing if backward did not reach this model, or if the pass is complete:
  /// plain loss.backward() ends with it, unless the last thing it did was to recompute. When a parameter got no
  /// gradient on some rank, and that is not allowed, all ranks throw and name it. @collective
  void finish();
  /// Must be called if an exception has ended backward or finish(). Local.
  void interrupt();
  /// Drops what interrupted passes have left: the next one begins from scratch. Throws on all ranks if exceptions have
  /// interrupted them at different places. The next pass calls it as well. @collective over all ranks if they were
  /// interrupted
  void drop_interrupted();
  /// Sets what is called at the end of each reduction. @collective
  void set_after_reduction(std::function<void()> call) { after_reduction_ = std::move(call); }

  /// Sets what is called when backward reaches this model first in a pass: two passes of one model begin together, so
  /// that each notices what backward has left out, on all ranks alike.
  void set_on_begin(std::function<void()> call) { on_begin_ = std::move(call); }
  /// Begins the pass although no gradient has arrived, unless it has begun, or gradients only add up.
  virtual void join_pass() = 0;

  /// From the next pass on, gradients are reduced among the ranks of `binding`, which must outlive that; null: among
  /// all ranks again. What passes have agreed on is learned again. Local.
  void reduce_among(const DataParallel* binding);

  const GradientTimes& times() const { return times_; }

 protected:
  explicit GradientPass(DataParallel parallel) : all_(std::move(parallel)) {}
  virtual ~GradientPass() = default;

  /// Must be called from the hook of each gradient that belongs to the pass. Returns true for the first one.
  bool begin();
  /// Must be called when all gradients have been reduced: the next gradient begins a new pass.
  void end();

  /// Whether gradients may travel within backward, before other ranks have sent any. Where parameters may be unused, a
  /// rank may send all of its gradients at the end of the pass, model by model: all others keep that order.
  bool may_send_early() const;
  bool sends_signals_by_host() const { return parallel_->signals == SignalPath::from_host_to_host; }
  /// The number of floats in a message.
  std::size_t message_size() const;
  /// This rank's signals, with its votes and its time, as the message that travels.
  std::vector<float> encode(StepSignals signals) const;
  /// The signals of all ranks. Passes votes and times on.
  StepSignals decode(const std::vector<float>& message) const;
  /// Adds up the message over all ranks through the host. @collective
  void add_by_host(std::vector<float>& message) const;
  /// Throws on all ranks if a parameter has no gradient on one of them. `missing` are the names on this rank.
  /// @collective where something is missing
  void require_complete(const StepSignals& all, const std::vector<std::string>& missing) const;

  const DataParallel all_;
  const DataParallel* parallel_ = &all_;  ///< the ranks of this pass
  GradientTimes times_;

 private:
  virtual StepSignals::Layout layout() const = 0;
  /// The parameters without a gradient that keep this rank from sending all gradients within backward.
  virtual std::vector<std::string> unsent() const = 0;
  std::string fault() const;
  /// Sends what was not sent yet, waits for all of it, gives the parameters their gradients and calls end().
  /// @collective
  virtual void reduce() = 0;
  /// After an exception: lets no parameter keep a gradient in memory that is under way. Local.
  virtual void release() {}
  /// The number of messages that this rank has started in the pass.
  virtual std::size_t started() const = 0;
  /// Waits for the messages that were started, and forgets them and the gradients that have arrived. @collective
  virtual void drop() = 0;
  /// Whether the ranks agree in another way on the models that the pass has reached.
  virtual bool is_announced() const { return false; }
  /// Forgets what the ranks have agreed on. Local.
  virtual void learn_again() = 0;
  void finish_unasked();

  bool reached_ = false;                                  ///< backward has reached this model
  const mpi::Communicator* interrupted_among_ = nullptr;  ///< null: the last pass was not interrupted
  bool learns_again_ = false;
  PassEnd end_;
  std::function<void()> after_reduction_;
  std::function<void()> on_begin_;
};

}  // namespace hortator::parallel
