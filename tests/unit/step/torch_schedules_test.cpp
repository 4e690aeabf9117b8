// Compares with PyTorch's schedulers. tests/tools/torch-schedules.py writes torch_schedules.json.
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/training/reduce_on_plateau.hpp>
#include <hortator/training/schedules.hpp>
#include <nlohmann/json.hpp>

#include "step/schedule/course.hpp"
#include "support/catch.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

const json& file() {
  static const json all = [] {
    std::ifstream in(TRAIN_TEST_DATA "/torch_schedules.json");
    return json::parse(in);
  }();
  return all;
}

template <typename Optimizer, typename Options>
std::unique_ptr<torch::optim::Optimizer> two_groups(const Options& defaults) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double lr : file().at("base_lr")) {
    auto options = defaults;
    options.lr(lr);
    groups.emplace_back(std::vector<at::Tensor>{at::ones({1}).requires_grad_()}, std::make_unique<Options>(options));
  }
  return std::make_unique<Optimizer>(groups, defaults);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const json& kind) {
  if (kind == "adamw") return two_groups<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1));
  return two_groups<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

PerGroup per_group(const json& value) {
  return value.is_array() ? PerGroup(value.get<std::vector<double>>()) : PerGroup(value.get<double>());
}

OneCycle one_cycle_options(const json& o) {
  return {.max_lr = per_group(o.at("max_lr")),
          .total_steps = o.at("total_steps"),
          .pct_start = o.at("pct_start"),
          .anneal = o.at("anneal_strategy") == "cos" ? Anneal::cosine : Anneal::linear,
          .cycle_momentum = o.at("cycle_momentum"),
          .base_momentum = per_group(o.at("base_momentum")),
          .max_momentum = per_group(o.at("max_momentum")),
          .div_factor = o.at("div_factor"),
          .final_div_factor = o.at("final_div_factor"),
          .three_phase = o.at("three_phase")};
}

CyclicLr cyclic_options(const json& o) {
  const auto& mode = o.at("mode");
  CyclicLr options{.base_lr = per_group(o.at("base_lr")),
                   .max_lr = per_group(o.at("max_lr")),
                   .step_size_up = o.at("step_size_up"),
                   .mode = mode == "triangular"    ? CycleMode::triangular
                           : mode == "triangular2" ? CycleMode::triangular2
                                                   : CycleMode::exp_range,
                   .gamma = o.at("gamma"),
                   .cycle_momentum = o.at("cycle_momentum"),
                   .base_momentum = per_group(o.at("base_momentum")),
                   .max_momentum = per_group(o.at("max_momentum"))};
  if (!o.at("step_size_down").is_null()) options.step_size_down = o.at("step_size_down").get<std::int64_t>();
  return options;
}

Schedule make_further(const json& kind, const json& o, torch::optim::Optimizer& optimizer) {
  if (kind == "cosine_warm_restarts") {
    return cosine_warm_restarts(
        optimizer, {.first_period = o.at("first_period"), .factor = o.at("factor"), .eta_min = o.at("eta_min")});
  }
  if (kind == "constant_lr")
    return constant_lr(optimizer, {.factor = o.at("factor"), .total_steps = o.at("total_steps")});
  if (kind == "linear_lr") {
    return linear_lr(
        optimizer,
        {.start_factor = o.at("start_factor"), .end_factor = o.at("end_factor"), .total_steps = o.at("total_steps")});
  }
  if (kind == "polynomial_lr")
    return polynomial_lr(optimizer, {.total_steps = o.at("total_steps"), .power = o.at("power")});
  if (kind == "cyclic_lr") return cyclic_lr(optimizer, cyclic_options(o));
  if (kind == "sequential_lr") {
    return sequential_lr(optimizer, {.parts = {LinearLr{.start_factor = 0.1, .total_steps = 4},
                                               CosineAnnealing{.half_period = 6}, ExponentialLr{.gamma = 0.8}},
                                     .milestones = o.at("milestones")});
  }
  if (kind == "sequential_cycle") {
    return sequential_lr(optimizer, {.parts = {OneCycle{.max_lr = {0.4, 0.02}, .total_steps = 6, .div_factor = 1},
                                               StepLr{.step_size = 3, .gamma = 0.5}},
                                     .milestones = o.at("milestones")});
  }
  REQUIRE(kind == "chained_lr");
  return chained_lr(optimizer, {ConstantLr{.factor = 0.5, .total_steps = 4}, ExponentialLr{.gamma = 0.9},
                                StepLr{.step_size = 3, .gamma = 0.5}});
}

Schedule make_schedule(const json& one, torch::optim::Optimizer& optimizer) {
  const auto& o = one.at("options");
  const auto& kind = one.at("kind");
  if (kind == "constant_warmup") return constant_warmup(optimizer, {.warmup_steps = o.at("warmup_steps")});
  if (kind == "linear_warmup") {
    return linear_warmup(optimizer, {.warmup_steps = o.at("warmup_steps"), .total_steps = o.at("total_steps")});
  }
  if (kind == "cosine_warmup") {
    return cosine_warmup(
        optimizer,
        {.warmup_steps = o.at("warmup_steps"), .total_steps = o.at("total_steps"), .num_cycles = o.at("num_cycles")});
  }
  if (kind == "one_cycle") return one_cycle(optimizer, one_cycle_options(o));
  if (kind == "step_lr") return step_lr(optimizer, {.step_size = o.at("step_size"), .gamma = o.at("gamma")});
  if (kind == "multi_step_lr") {
    return multi_step_lr(optimizer, {.milestones = o.at("milestones"), .gamma = o.at("gamma")});
  }
  if (kind == "exponential_lr") return exponential_lr(optimizer, {.gamma = o.at("gamma")});
  if (kind == "cosine_annealing")
    return cosine_annealing(optimizer, {.half_period = o.at("half_period"), .eta_min = o.at("eta_min")});
  return make_further(kind, o, optimizer);
}

PlateauOptions plateau_options(const json& o) {
  using Mode = PlateauOptions::Mode;
  using Threshold = PlateauOptions::Threshold;
  return {.mode = o.at("mode") == "min" ? Mode::min : Mode::max,
          .factor = o.at("factor"),
          .patience = o.at("patience"),
          .threshold = o.at("threshold"),
          .threshold_mode = o.at("threshold_mode") == "rel" ? Threshold::relative : Threshold::absolute,
          .cooldown = o.at("cooldown"),
          .min_lr = per_group(o.at("min_lr")),
          .eps = o.at("eps")};
}

bool is_near(double ours, double theirs) { return std::abs(ours - theirs) <= 1e-12 * std::max(1.0, std::abs(theirs)); }

bool equals(torch::optim::Optimizer& optimizer, const json& lr, const json* momentum) {
  for (std::size_t group = 0; group < lr.size(); ++group) {
    auto& options = optimizer.param_groups()[group].options();
    if (!is_near(options.get_lr(), lr[group])) return false;
    if (momentum != nullptr && !is_near(*step::momentum_of(options), momentum->at(group))) return false;
  }
  return true;
}

// Loads the state into a new optimizer and schedule at each step, as a resumed run does.
void check_course(const json& one) {
  auto optimizer = make_optimizer(one.at("optimizer"));
  auto schedule = make_schedule(one, *optimizer);
  for (std::size_t step = 0; step < one.at("lr").size(); ++step) {
    INFO("step " << step);
    if (step > 0) schedule.step();
    CHECK(equals(*optimizer, one.at("lr")[step], &one.at("momentum")[step]));
    CHECK(schedule.last_lr() == optimizer->param_groups()[0].options().get_lr());

    auto resumed_optimizer = make_optimizer(one.at("optimizer"));
    auto resumed = make_schedule(one, *resumed_optimizer);
    resumed.load(schedule.state());
    CHECK(resumed.steps() == static_cast<std::int64_t>(step));
    CHECK(equals(*resumed_optimizer, one.at("lr")[step], &one.at("momentum")[step]));
    schedule = resumed;
    optimizer = std::move(resumed_optimizer);
  }
}

void check_plateau(const json& one) {
  auto optimizer = make_optimizer("sgd");
  ReduceOnPlateau schedule(*optimizer, plateau_options(one.at("options")));
  const auto& metrics = one.at("metrics");
  for (std::size_t step = 0; step < metrics.size(); ++step) {
    INFO("step " << step);
    schedule.step(std::stod(metrics[step].get<std::string>()));
    CHECK(equals(*optimizer, one.at("lr")[step], nullptr));

    auto resumed_optimizer = make_optimizer("sgd");
    ReduceOnPlateau resumed(*resumed_optimizer, plateau_options(one.at("options")));
    resumed.load(schedule.state());
    CHECK(resumed.steps() == static_cast<std::int64_t>(step) + 1);
    CHECK(equals(*resumed_optimizer, one.at("lr")[step], nullptr));
    schedule = resumed;
    optimizer = std::move(resumed_optimizer);
  }
}

}  // namespace

TEST_CASE("every schedule gives PyTorch's rates and momenta, also if it is resumed at any step") {
  int courses = 0;
  int plateaus = 0;
  for (const auto& one : file().at("cases")) {
    INFO(one.at("kind") << " " << one.at("options"));
    const bool plateau = one.at("kind") == "reduce_on_plateau";
    plateau ? check_plateau(one) : check_course(one);
    ++(plateau ? plateaus : courses);
  }
  CHECK(courses > 40);
  CHECK(plateaus > 10);
}

TEST_CASE("a sequence of schedules refuses parts and milestones that do not fit, by name") {
  const auto optimizer = make_optimizer("sgd");
  const std::vector<SchedulePart> two = {LinearLr{}, ExponentialLr{}};
  CHECK_THROWS_WITH(sequential_lr(*optimizer, {.parts = two}), ContainsSubstring("2 parts and the milestones []"));
  CHECK_THROWS_WITH(sequential_lr(*optimizer, {.parts = two, .milestones = {0}}), ContainsSubstring("milestones [0]"));
  CHECK_THROWS_WITH(sequential_lr(*optimizer, {.parts = {LinearLr{}, StepLr{3}, LinearLr{}}, .milestones = {5, 5}}),
                    ContainsSubstring("[5, 5]"));
  CHECK_THROWS_WITH(sequential_lr(*optimizer, {}), ContainsSubstring("0 parts"));
  CHECK_THROWS_WITH(
      sequential_lr(*optimizer, {.parts = {OneCycle{.max_lr = 1.0, .total_steps = 3}, LinearLr{}}, .milestones = {4}}),
      ContainsSubstring("one_cycle has 3 total_steps, but its part has 4 steps"));
  CHECK_THROWS_WITH(chained_lr(*optimizer, {}), ContainsSubstring("no parts"));
  CHECK_THROWS_WITH(chained_lr(*optimizer, {CosineAnnealing{.half_period = 3, .eta_min = 0.1}}),
                    ContainsSubstring("cannot take cosine_annealing"));
  CHECK_THROWS_WITH(chained_lr(*optimizer, {std::function<double(std::int64_t)>()}), ContainsSubstring("empty"));
  CHECK_THROWS_WITH(cosine_warm_restarts(*optimizer, {.first_period = 4, .factor = 0}),
                    ContainsSubstring("factor = 0"));
  CHECK_THROWS_WITH(cyclic_lr(*optimizer, {.step_size_up = 0}), ContainsSubstring("step_size_up = 0"));
  CHECK_THROWS_WITH(polynomial_lr(*optimizer, {.total_steps = 0}), ContainsSubstring("total_steps is 0"));
}

TEST_CASE("a sequence ends with its last part, and functions of the step may be parts") {
  const auto optimizer = make_optimizer("sgd");
  const std::function<double(std::int64_t)> halves = [](std::int64_t step) { return std::pow(0.5, step); };
  auto schedule = sequential_lr(
      *optimizer,
      {.parts = {halves, OneCycle{.max_lr = 1.0, .total_steps = 2, .cycle_momentum = false}}, .milestones = {3}});
  CHECK(schedule.last_lrs() == std::vector{0.4, 0.02});
  schedule.step();
  schedule.step();
  CHECK(schedule.last_lrs() == std::vector{0.1, 0.005});
  for (int i = 0; i < 3; ++i) schedule.step();
  CHECK_THROWS_WITH(schedule.step(), ContainsSubstring("its total_steps are 5"));
}
