#pragma once

#include <cstdint>
#include <functional>
#include <hortator/schedule.hpp>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
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
  /// Throws, naming the option, unless it has one number or as many as there are groups.
  void check(std::size_t groups, std::string_view option) const;

 private:
  std::vector<double> values_;
};

/// Options of constant_warmup().
struct ConstantWarmup {
  std::int64_t warmup_steps = 0;
};
/// Rises linearly from 0 to the full rate over warmup_steps, then stays.
HORTATOR_API Schedule constant_warmup(torch::optim::Optimizer& optimizer, const ConstantWarmup& options);

/// Options of linear_warmup().
struct LinearWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
};
/// Rises linearly from 0 to the full rate over warmup_steps, then falls linearly to 0 at total_steps.
HORTATOR_API Schedule linear_warmup(torch::optim::Optimizer& optimizer, const LinearWarmup& options);

/// Options of cosine_warmup().
struct CosineWarmup {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double num_cycles = 0.5;  ///< periods of the cosine; 0.5 falls once
  double floor = 0;         ///< the lowest factor
};
/// Rises linearly from 0 to the full rate over warmup_steps, then follows a cosine down to `floor` at total_steps. Then
/// it stays, whereas that of Hugging Face Transformers rises again.
HORTATOR_API Schedule cosine_warmup(torch::optim::Optimizer& optimizer, const CosineWarmup& options);

/// The curve along which a rate rises and falls.
enum class Anneal { cosine, linear };

/// Options of one_cycle().
struct OneCycle {
  PerGroup max_lr = 0.0;  ///< the peak
  std::int64_t total_steps = 0;
  double pct_start = 0.3;  ///< the fraction of steps in which the rate rises
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum =
      true;  ///< momentum (Adam: the first beta) falls from max to base while the rate rises, and back
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last rate is the first / final_div_factor
  bool three_phase = false;       ///< falls to the first rate as fast as it rose, then to the last
};
/// torch's OneCycleLR. Stepping it beyond total_steps is an error; a prepared one stays at its end. At step total_steps
/// torch extrapolates beyond its last rate, with linear annealing to a negative rate; this one stays at the last rate.
HORTATOR_API Schedule one_cycle(torch::optim::Optimizer& optimizer, const OneCycle& options);

/// Options of step_lr().
struct StepLr {
  std::int64_t step_size = 0;
  double gamma = 0.1;
};
/// Multiplies the rate by gamma every step_size steps; torch's StepLR.
HORTATOR_API Schedule step_lr(torch::optim::Optimizer& optimizer, const StepLr& options);

/// Options of multi_step_lr().
struct MultiStepLr {
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
};
/// Multiplies the rate by gamma at each milestone; torch's MultiStepLR.
HORTATOR_API Schedule multi_step_lr(torch::optim::Optimizer& optimizer, const MultiStepLr& options);

/// Options of exponential_lr().
struct ExponentialLr {
  double gamma = 0.9;
};
/// Multiplies the rate by gamma at each step; torch's ExponentialLR.
HORTATOR_API Schedule exponential_lr(torch::optim::Optimizer& optimizer, const ExponentialLr& options);

/// Options of cosine_annealing().
struct CosineAnnealing {
  std::int64_t half_period = 0;  ///< T_max
  double eta_min = 0;            ///< the lowest rate
};
/// Follows a cosine between the full rate and eta_min: down in half_period steps, up again in as many, and so on;
/// torch's CosineAnnealingLR.
HORTATOR_API Schedule cosine_annealing(torch::optim::Optimizer& optimizer, const CosineAnnealing& options);

/// Options of cosine_warm_restarts().
struct CosineWarmRestarts {
  std::int64_t first_period = 0;  ///< T_0
  std::int64_t factor = 1;        ///< T_mult: each period is that many times as long as the one before
  double eta_min = 0;             ///< the lowest rate
};
/// Falls along a cosine from the full rate to eta_min, and starts again at the full rate after each period; torch's
/// CosineAnnealingWarmRestarts.
HORTATOR_API Schedule cosine_warm_restarts(torch::optim::Optimizer& optimizer, const CosineWarmRestarts& options);

/// Options of constant_lr().
struct ConstantLr {
  double factor = 1.0 / 3;
  std::int64_t total_steps = 5;  ///< total_iters
};
/// Multiplies the rate by `factor` in the first total_steps steps; torch's ConstantLR.
HORTATOR_API Schedule constant_lr(torch::optim::Optimizer& optimizer, const ConstantLr& options);

/// Options of linear_lr().
struct LinearLr {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_steps = 5;  ///< total_iters
};
/// Multiplies the rate by a number that goes from start_factor to end_factor in total_steps steps; torch's LinearLR.
HORTATOR_API Schedule linear_lr(torch::optim::Optimizer& optimizer, const LinearLr& options);

/// Options of polynomial_lr().
struct PolynomialLr {
  std::int64_t total_steps = 5;  ///< total_iters
  double power = 1;
};
/// Multiplies the rate by (1 - step / total_steps) to that power, and by 0 afterwards; torch's PolynomialLR.
HORTATOR_API Schedule polynomial_lr(torch::optim::Optimizer& optimizer, const PolynomialLr& options);

/// How the peaks of cyclic_lr() change: not at all, halved with each cycle, or multiplied by gamma at each step.
enum class CycleMode { triangular, triangular2, exp_range };

/// Options of cyclic_lr().
struct CyclicLr {
  PerGroup base_lr = 0.0;  ///< the lowest rate; replaces that of the optimizer
  PerGroup max_lr = 0.0;   ///< the peak of the first cycle
  std::int64_t step_size_up = 2000;
  std::optional<std::int64_t> step_size_down = {};  ///< default: step_size_up
  CycleMode mode = CycleMode::triangular;
  double gamma = 1;  ///< with CycleMode::exp_range
  bool cycle_momentum =
      true;  ///< momentum (Adam: the first beta) falls from max to base while the rate rises, and back
  PerGroup base_momentum = 0.8;
  PerGroup max_momentum = 0.9;
};
/// Rises and falls linearly between two rates, again and again; torch's CyclicLR.
HORTATOR_API Schedule cyclic_lr(torch::optim::Optimizer& optimizer, const CyclicLr& options);

// Schedules that consist of others. Their parts are options, not schedules, so that all parts know the optimizer's own
// rates: `sequential_lr(sgd, {.parts = {LinearLr{.total_steps = 100}, CosineAnnealing{900}}, .milestones = {100}})`.

/// The options of a ready-made schedule, or a function of the step by which the rate is multiplied.
using SchedulePart = std::variant<ConstantWarmup, LinearWarmup, CosineWarmup, StepLr, MultiStepLr, ExponentialLr,
                                  ConstantLr, LinearLr, PolynomialLr, CosineAnnealing, CosineWarmRestarts, OneCycle,
                                  CyclicLr, std::function<double(std::int64_t step)>>;

/// Options of sequential_lr().
struct SequentialLr {
  std::vector<SchedulePart> parts = {};
  std::vector<std::int64_t> milestones = {};  ///< the steps at which the second part, the third, ... begin
};
/// One part after the other, each from its own step 0; torch's SequentialLR. A momentum that a part has set stays as it
/// was at the part's end.
HORTATOR_API Schedule sequential_lr(torch::optim::Optimizer& optimizer, const SequentialLr& options);

/// All parts at once: their factors of the rate are multiplied; torch's ChainedScheduler. Parts that set rates of their
/// own, or a lowest one (one_cycle, cyclic_lr, eta_min), are an error.
HORTATOR_API Schedule chained_lr(torch::optim::Optimizer& optimizer, const std::vector<SchedulePart>& parts);

}  // namespace hortator
