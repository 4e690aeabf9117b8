#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_hook.hpp"
#include "parallel/data_parallel/gradient_pass.hpp"
#include "parallel/zero/arrival_order.hpp"
#include "parallel/zero/gradient_array.hpp"
#include "parallel/zero/sharded_model.hpp"
#include "parallel/zero/sharding.hpp"
#include "parallel/zero/travel_buffers.hpp"

namespace hortator::parallel {

/// Reduces the gradients of one model to shards: when all gradients of an array are there, they are averaged over the
/// ranks, each rank gets its part, as the gradient of its slices, and the parameters' own gradients are freed. Arrays
/// start in a fixed order, the same on all ranks, learned from the first pass. Passes add up in the shards, so that
/// micro-steps keep no whole gradients either: each of them is reduced.
///
/// Where moments are in a folder, so are the shards: in files that the system writes when memory is short.
///
/// At stage 3, when ranks reach the parameters in different orders, all of them throw, unless
/// ddp.find_unused_parameters allows it.
///
/// A gradient that arrives after its array was sent (a parameter that backward reaches again, recomputation) travels in
/// a second round at the end of the pass. From then on its array is sent at the end of each pass.
class GradientScatter final : public GradientPass {
 public:
  /// `is_paused`: gradients only add up for now, and need not be complete. @collective
  GradientScatter(const ShardedModel& model, const DataParallel& parallel, std::function<bool()> is_paused);
  void join_pass() override;
  /// Ends all calls from backward.
  void retire() { hooks_.clear(); }

  /// Removes the slices' gradients.
  void clear();
  /// How often gradients were reduced: the same on all ranks.
  std::int64_t passes() const { return passes_; }
  std::vector<std::vector<std::string>> arrays() const;  ///< names, in the order in which they travel

 private:
  void make_arrays();
  void make_arrays(const FlatParameters& parameters, const ShardRanks& ranks);
  at::Tensor new_shard(std::int64_t elements, const at::Tensor& like) const;
  void hook();
  void on_gradient(std::size_t array, std::size_t member);
  bool may_start(const GradientArray& array) const;
  void start_full_arrays();
  void start(std::size_t array);
  at::Tensor take_buffer(GradientArray& array);
  void wait(GradientArray& array);
  std::vector<std::string> missing() const;
  std::size_t count_learning() const;
  StepSignals::Layout layout() const override;
  std::vector<std::string> unsent() const override;
  void reduce() override;
  std::size_t started() const override { return next_; }
  void drop() override;
  void learn_again() override;
  StepSignals exchange_signals(bool is_missing_some);
  void add_over_ranks(std::vector<float>& message);
  void send_leftovers(const StepSignals& all);
  void publish(const StepSignals& all);
  void end_pass(bool complete);
  void learn_order();
  void put_late_ones_last();
  void agree_on_order();

  const ShardedModel& model_;
  const Sharding& sharding_;
  std::function<bool()> is_paused_;
  std::vector<GradientArray> arrays_;
  std::vector<std::size_t> first_;  ///< for each array, the number of its first parameter among all that get gradients
  std::size_t parameters_ = 0;      ///< number of those that get gradients
  std::vector<std::size_t> order_;  ///< of arrays
  std::vector<std::size_t> completed_;  ///< in the first pass, in the order of their completion
  bool learned_ = false;
  ArrivalOrder arrivals_;
  std::size_t next_ = 0;                  ///< in the order
  std::optional<TravelBuffers> buffers_;  ///< from the end of construction on
  at::Tensor message_;                    ///< of signals, where they travel as gradients do; from the first pass on
  std::int64_t passes_ = 0;
  std::vector<GradientHook> hooks_;  ///< last: they call into the other members
};

}  // namespace hortator::parallel
