#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_bucket.hpp"
#include "parallel/data_parallel/gradient_hook.hpp"
#include "parallel/data_parallel/replica_check.hpp"
#include "parallel/uneven/uneven_inputs.hpp"

namespace hortator::parallel {

/// Averages the gradients of one model over all ranks. The first synchronised backward only learns in which order they
/// arrive; then buckets are made along rank 0's order. From then on each gradient goes into its bucket when backward
/// has accumulated it, and buckets start in a fixed order, the same on all ranks, each as soon as it and all before it
/// are full. A parameter that nested passes reach (recomputation), or that is reached more than once, is counted on
/// when the outermost backward is over.
class GradientReducer {
 public:
  /// `parameters` in the module's order, each once. One that is frozen now must stay so; one that is frozen later rests
  /// as long as it is.
  GradientReducer(std::vector<NamedParameter> parameters, const DataParallel& parallel);

  /// While paused, gradients add up where they are. Pauses nest, and so does what overrules them.
  void pause() { ++pauses_; }
  void resume() { --pauses_; }
  void overrule_pauses() { ++overrulings_; }
  void respect_pauses() { --overrulings_; }
  bool is_paused() const { return pauses_ > 0 && overrulings_ == 0; }

  /// After backward: all gradients are averages. Nothing happens if backward did not reach this model, or if this was
  /// done already: plain loss.backward() ends with it, unless what it did last was to recompute. When a parameter got
  /// no gradient on some rank, and that is not allowed, all ranks throw and name it. @collective
  void finish();
  /// Called at the end of each reduction. @collective
  void set_after_reduction(std::function<void()> call) { after_reduction_ = std::move(call); }
  /// No more calls from backward: the communicator is about to go.
  void retire() {
    hooks_.clear();
    buckets_.clear();
    parameters_.clear();
  }

  /// From now on all collectives are announced, as those of model number `model`; null: no more. Not within backward.
  void announce_by(const UnevenInputs* uneven, int model);
  /// What an announcement asks of a rank without batches. @collective
  void follow(UnevenInputs::Collective what);

  /// Names of the parameters in each bucket; empty until the first reduction.
  std::vector<std::vector<std::string>> buckets() const;
  const GradientTimes& times() const { return times_; }

 private:
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    std::size_t bucket = 0;
    std::size_t slot = 0;
    bool used = false;         ///< has got a gradient since the last reduction
    bool late = false;         ///< more may be added to its gradient until backward is over
    int task = no_graph_task;  ///< that brought its first gradient
  };

  void hook(std::vector<NamedParameter> parameters);
  void on_gradient(std::size_t index);
  void begin_pass();
  void finish_alone();
  void learn(std::size_t index, int task);
  void plan();
  void start_full_buckets();
  void start_next_bucket();
  void reduce_zeros();
  std::vector<std::string> fill_rest();
  std::int64_t count_marks() const;
  void set_marks(bool misses_some);
  std::vector<float> wait_for_all();
  bool sends_marks_by_host() const { return parallel_.marks == Marks::from_host_to_host; }
  std::vector<float> exchange_host_marks();
  void publish(const std::vector<float>& marks);
  void end_pass();

  const DataParallel parallel_;
  std::vector<Parameter> parameters_;
  std::vector<int> arrived_;  ///< in the first pass
  std::vector<GradientBucket> buckets_;
  std::vector<float> host_marks_;  ///< of this pass, where they do not travel behind the gradients
  std::size_t next_bucket_ = 0;    ///< the first that has not started
  PassEnd end_;
  bool reached_ = false;           ///< backward has come to this model
  int outermost_ = no_graph_task;  ///< the pass's graph task, as far as it is known
  int pauses_ = 0;
  int overrulings_ = 0;
  const UnevenInputs* uneven_ = nullptr;
  int model_ = 0;
  GradientTimes times_;
  std::function<void()> after_reduction_;
  std::vector<GradientHook> hooks_;  ///< last: they call into the rest
};

}  // namespace hortator::parallel
