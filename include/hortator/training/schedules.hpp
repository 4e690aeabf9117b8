#pragma once

#include <cstdint>
#include <hortator/schedule.hpp>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

/// Ready-made schedules. `auto schedule = hortator::linear_warmup(adamw, {.warmup_steps = 100, .total_steps = 1000});`
namespace hortator {

/// One number for all parameter groups, or one for each.
class HORTATOR_API PerGroup {
 public:
  PerGroup(double value) : values_{value} {}
  PerGroup(std::initializer_list<double> values) : values_(values) {}
  PerGroup(std::vector<double> values) : values_(std::move(values)) {}

  double of(std::size_t group) const { return values_.size() == 1 ? values_.front() : values_.at(group); }
  /// Throws, naming the option, unless there is one number, or as many as groups.
  void check(std::size_t groups, std::string_view option) const;

 private:
  std::vector<double> values_;
};

/// Of constant_warmup.
struct ConstantWarmup {
  std::int64_t warmup_steps = 0;
};
/// From 0 up to the full rate over warmup_steps, in a straight line; then it stays.
HORTATOR_API Schedule constant_warmup(torch::optim::Optimizer& optimizer, const ConstantWarmup& options);

/// Of linear_warmup.
struct LinearWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
};
/// From 0 up to the full rate over warmup_steps, then down to 0 at total_steps, both in straight lines.
HORTATOR_API Schedule linear_warmup(torch::optim::Optimizer& optimizer, const LinearWarmup& options);

/// Of cosine_warmup.
struct CosineWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double num_cycles = 0.5;  ///< waves of the cosine: 0.5 falls once
  double floor = 0;         ///< the factor at the bottom of the wave
};
/// From 0 up to the full rate over warmup_steps, then along a cosine, down to `floor` at total_steps. After that it
/// stays, where the reference's would rise again.
HORTATOR_API Schedule cosine_warmup(torch::optim::Optimizer& optimizer, const CosineWarmup& options);

/// The curve along which a rate rises and falls.
enum class Anneal { cosine, linear };

/// Of one_cycle.
struct OneCycle {
  PerGroup max_lr = 0.0;  ///< the peak
  std::int64_t total_steps = 0;
  double pct_start = 0.3;  ///< the part of the steps in which the rate rises
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = true;  ///< momentum (Adam: its first beta) falls from max to base as the rate rises, and back
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last rate is the first / final_div_factor
  bool three_phase = false;       ///< down to the first rate as fast as up, then down to the last
};
/// torch's OneCycleLR. Stepping it beyond total_steps is an error (prepared, it stays at its end). At step total_steps
/// torch extrapolates beyond its last rate, in straight lines to a negative one; this one stays at the last rate.
HORTATOR_API Schedule one_cycle(torch::optim::Optimizer& optimizer, const OneCycle& options);

/// Of step_lr.
struct StepLr {
  std::int64_t step_size = 0;
  double gamma = 0.1;
};
/// Times gamma every step_size steps; torch's StepLR.
HORTATOR_API Schedule step_lr(torch::optim::Optimizer& optimizer, const StepLr& options);

/// Of multi_step_lr.
struct MultiStepLr {
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
};
/// Times gamma at each milestone; torch's MultiStepLR.
HORTATOR_API Schedule multi_step_lr(torch::optim::Optimizer& optimizer, const MultiStepLr& options);

/// Of exponential_lr.
struct ExponentialLr {
  double gamma = 0.9;
};
/// Times gamma at each step; torch's ExponentialLR.
HORTATOR_API Schedule exponential_lr(torch::optim::Optimizer& optimizer, const ExponentialLr& options);

/// Of cosine_annealing.
struct CosineAnnealing {
  std::int64_t half_period = 0;  ///< T_max
  double eta_min = 0;            ///< the lowest rate
};
/// Between the full rate and eta_min along a cosine, down in half_period steps, up again in as many, and so on; torch's
/// CosineAnnealingLR.
HORTATOR_API Schedule cosine_annealing(torch::optim::Optimizer& optimizer, const CosineAnnealing& options);

}  // namespace hortator
