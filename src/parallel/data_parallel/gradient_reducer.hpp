#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_bucket.hpp"
#include "parallel/data_parallel/gradient_hook.hpp"
#include "parallel/data_parallel/gradient_pass.hpp"
#include "parallel/data_parallel/replica_check.hpp"
#include "parallel/uneven/uneven_inputs.hpp"

namespace hortator::parallel {

/// Averages the gradients of one model over all ranks. The first synchronised backward only learns in which order they
/// arrive; then buckets are made along rank 0's order. From then on each gradient goes into its bucket when backward
/// has accumulated it. Buckets start in a fixed order, the same on all ranks, each as soon as it and all before it are
/// full. The gradient of a parameter that nested passes reach (recomputation), or that is reached more than once, is
/// complete only when the outermost backward is over. Sparse gradients are in no bucket: their rows are gathered when
/// backward is over (sparse_gradients.hpp).
class GradientReducer final : public GradientPass {
 public:
  /// `parameters` in the module's order, each once. One that is frozen now must stay frozen; one that is frozen later
  /// is skipped while it is.
  GradientReducer(std::vector<NamedParameter> parameters, const DataParallel& parallel);

  /// While paused, gradients add up on their rank. Pauses nest, and so do ignore_pauses() and respect_pauses(), between
  /// which no pause counts.
  void pause() { ++pauses_; }
  void resume() { --pauses_; }
  void ignore_pauses() { ++ignorings_; }
  void respect_pauses() { --ignorings_; }
  bool is_paused() const { return pauses_ > 0 && ignorings_ == 0; }
  /// How many gradients have come so far, also while paused. On one rank it counts none.
  std::int64_t arrivals() const { return arrivals_; }

  void join_pass() override;
  /// Ends all calls from backward. Must be called before the communicator is destroyed.
  void retire() {
    hooks_.clear();
    buckets_.clear();
    ranks_of_.clear();
    parameters_.clear();
  }

  /// Announces all further collectives, as those of model number `model`; null: no more. Not within backward.
  void announce_by(const UnevenInputs* uneven, int model);
  /// Does what an announcement asks of a rank without batches. @collective
  void follow(UnevenInputs::Collective what);

  /// Names of the parameters in each bucket; empty until the first reduction.
  std::vector<std::vector<std::string>> buckets() const;

 private:
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    std::size_t bucket = 0;
    std::size_t slot = 0;
    bool used = false;         ///< it got a gradient since the last reduction
    bool late = false;         ///< more may be added to its gradient until backward is over
    bool sparse = false;       ///< its gradients are sparse, on all ranks once buckets are planned
    int task = no_graph_task;  ///< the graph task that brought its first gradient
  };

  void hook(std::vector<NamedParameter> parameters);
  void on_gradient(std::size_t index);
  void start_pass();
  void learn(std::size_t index, int task);
  void plan();  ///< @collective
  bool has_only_sparse() const;
  void check_layout(const Parameter& parameter) const;
  void agree_on_sparse();                                               ///< @collective
  void make_bucket(std::vector<NamedParameter> members, bool is_last);  ///< @collective
  bool may_start_next() const;
  void start_full_buckets();
  void start_next_bucket();  ///< @collective
  void reduce_zeros();       ///< @collective
  std::vector<std::string> fill_remaining();
  /// Whether only the ranks that hold the same experts average its gradient.
  bool is_of_experts(const at::Tensor& parameter) const;
  StepSignals::Layout layout() const override;
  std::vector<std::string> unsent() const override;
  bool is_announced() const override { return uneven_ != nullptr; }
  void reduce() override;
  void release() override;
  std::size_t started() const override { return next_bucket_; }
  void drop() override;
  void learn_again() override;
  void send_signals(bool is_missing_some);
  StepSignals wait_for_all();             ///< @collective
  std::vector<float> exchange_by_host();  ///< @collective
  void publish(const StepSignals& all);
  bool learns(std::size_t index, const StepSignals& all) const;
  void average_sparse(const StepSignals& all, bool has_own);  ///< @collective
  void end_pass();

  std::vector<Parameter> parameters_;
  std::vector<int> arrived_;  ///< in the first pass
  std::vector<GradientBucket> buckets_;
  std::vector<comm::Communicator*> ranks_of_;  ///< that average each bucket
  std::vector<float> host_message_;            ///< this pass's signals, where they do not travel behind the gradients
  std::size_t next_bucket_ = 0;                ///< the first that has not started
  int outermost_ = no_graph_task;              ///< the pass's graph task, as far as it is known
  std::int64_t arrivals_ = 0;
  int pauses_ = 0;
  int ignorings_ = 0;
  const UnevenInputs* uneven_ = nullptr;
  int model_ = 0;
  std::vector<GradientHook> hooks_;  ///< last: they call into the other members
};

}  // namespace hortator::parallel
