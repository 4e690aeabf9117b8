#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/data_parallel/arrival_order.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/data_parallel/gradient_hook.hpp"
#include "parallel/data_parallel/travel_buffers.hpp"
#include "parallel/zero/flat_parameters.hpp"
#include "parallel/zero/gradient_array.hpp"
#include "parallel/zero/sharding.hpp"

namespace hortator::parallel {

/// Deals out the gradients of one model: when all of an array's have come, they are added up over the ranks, each rank
/// gets the mean of its part, as the gradient of its slices, and the parameters' own are freed. Arrays start in a fixed
/// order, the same on all ranks, learned from the first pass. Passes add up in the shards, so that micro-steps keep no
/// whole gradients either: each of them is reduced.
///
/// Where moments are in a folder, so are the shards: in files that the system writes when memory is short.
///
/// At stage 3 ranks that come to the parameters in different orders are told so, all of them, unless
/// ddp.find_unused_parameters says that they may.
///
/// A gradient that comes when its array is on its way (a parameter that backward reaches again, recomputation) goes in
/// a second round at the end of the pass, and its array waits for the end from then on.
class GradientScatter {
 public:
  /// `is_paused`: gradients only add up for now, and need not be complete.
  GradientScatter(parallel::FlatParameters& parameters, const DataParallel& parallel, std::function<bool()> is_paused);
  GradientScatter(const GradientScatter&) = delete;
  GradientScatter& operator=(const GradientScatter&) = delete;

  /// After backward: all slices have their gradients. Nothing happens if backward did not reach this model, or if this
  /// was done already. @collective
  void finish();
  void set_after_reduction(std::function<void()> call) { after_reduction_ = std::move(call); }
  void retire() { hooks_.clear(); }

  /// The slices' gradients go.
  void clear();
  /// How often gradients were dealt out: the same on all ranks.
  std::int64_t passes() const { return passes_; }
  const GradientTimes& times() const { return times_; }
  std::vector<std::vector<std::string>> arrays() const;  ///< names, in the order in which they travel

 private:
  void make_arrays();
  at::Tensor new_shard(std::int64_t elements, const at::Tensor& like) const;
  void allocate_marks();
  void hook();
  void on_gradient(std::size_t array, std::size_t member);
  void finish_alone();
  void start_full_arrays();
  void start(std::size_t array);
  at::Tensor take_buffer(GradientArray& array);
  void wait(GradientArray& array);
  std::vector<std::string> missing() const;
  std::size_t count_learning() const;
  std::vector<float> exchange_marks(bool misses_some);
  void add_over_ranks(std::vector<float>& marks);
  void send_leftovers(const std::vector<float>& marks);
  void publish(const std::vector<float>& marks);
  void end_pass(bool complete);
  void learn_order();
  void put_late_ones_last();
  void agree_on_order();

  parallel::FlatParameters& flat_;
  const DataParallel parallel_;
  const Sharding& sharding_;
  std::function<bool()> is_paused_;
  std::vector<GradientArray> arrays_;
  std::vector<std::size_t> first_;      ///< number of each array's first parameter among all that get gradients
  std::size_t parameters_ = 0;          ///< that get gradients
  std::vector<std::size_t> order_;      ///< of arrays
  std::vector<std::size_t> completed_;  ///< in the first pass, as they came
  bool learned_ = false;
  ArrivalOrder arrivals_;
  std::size_t next_ = 0;                  ///< in the order
  std::optional<TravelBuffers> buffers_;  ///< from the end of construction on
  at::Tensor marks_;                      ///< where they travel as gradients do
  bool reached_ = false;
  PassEnd end_;
  std::int64_t passes_ = 0;
  GradientTimes times_;
  std::function<void()> after_reduction_;
  std::vector<GradientHook> hooks_;  ///< last: they call into the rest
};

}  // namespace hortator::parallel
