#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/random.hpp>
#include <optional>
#include <utility>

#include "bench/dispatched_half.hpp"
#include "bench/layer_stack.hpp"
#include "bench/measurements.hpp"
#include "paging/stores/host_stores.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t operators_a_step = 2000;
constexpr int max_passes = 10;  // a pass through the stack moves a gigabyte

/// A parameter that is paged, and always present.
class PresentParameter {
 public:
  explicit PresentParameter(const at::Tensor& tensor) {
    paging::PagedStorages storages({{.name = "weight", .tensor = tensor}});
    auto pages = paging::plan_pages(storages.items(), std::vector<int>{0}, {});
    auto store = std::make_unique<paging::HostStore>(pages, paging::HostStore::Use::in_frames);
    pager_.emplace(std::move(storages), std::move(pages), std::move(store), paging::Pager::Options{});
  }
  ~PresentParameter() { pager_->release(); }
  PresentParameter(const PresentParameter&) = delete;
  PresentParameter& operator=(const PresentParameter&) = delete;

 private:
  std::optional<paging::Pager> pager_;
};

Result operators_with(const Plan& plan, const std::string& name, const std::function<void(const at::Tensor&)>& op) {
  const c10::InferenceMode inference;
  const auto plain = at::randn({64, 64});
  const auto paged = at::randn({64, 64});
  const PresentParameter parameter(paged);
  const auto many = [&](const at::Tensor& weight) {
    for (std::int64_t i = 0; i < operators_a_step; ++i) op(weight);
  };
  const auto timing = time_in_pairs({.ours = [&] { many(paged); }, .reference = [&] { many(plain); }, .line_up = [] {}},
                                    {.blocks = plan.blocks, .steps = 1});
  return {.name = "paging_operator",
          .params = {{"case", name},
                     {"operators", operators_a_step},
                     {"added_ns", (timing.ours.median_s - timing.reference.median_s) / operators_a_step * 1e9}},
          .reference = "the same without paging",
          .timing = timing};
}

Result touched(const Plan& plan) {
  const auto input = at::randn({8, 64});
  return operators_with(plan, "operator-touched", [&](const at::Tensor& weight) { at::mm(input, weight); });
}

// The same operator on the same tensors; the difference is that the process has a paged parameter.
Result untouched(const Plan& plan) {
  const c10::InferenceMode inference;
  const auto a = at::ones({4});
  const auto weight = at::randn({64, 64});
  std::optional<PresentParameter> somewhere;
  const auto many = [&](bool is_paged) {
    if (is_paged != somewhere.has_value()) is_paged ? (void)somewhere.emplace(weight) : somewhere.reset();
    for (std::int64_t i = 0; i < operators_a_step; ++i) at::add(a, a);
  };
  const auto timing =
      time_in_pairs({.ours = [&] { many(true); }, .reference = [&] { many(false); }, .line_up = [] {}}, plan);
  return {.name = "paging_operator",
          .params = {{"case", "operator-untouched"},
                     {"operators", operators_a_step},
                     {"added_ns", (timing.ours.median_s - timing.reference.median_s) / operators_a_step * 1e9}},
          .reference = "the same while nothing is paged",
          .timing = timing};
}

Result forward(const Plan& plan, LayerStack& stack, const std::string& name, const Sides& sides,
               const std::string& reference, double bytes) {
  const auto timing = time_in_pairs(sides, {.blocks = std::min(plan.blocks, max_passes), .steps = 1});
  return {.name = "paging_forward",
          .params = {{"case", name},
                     {"layers", stack.layers()},
                     {"width", LayerStack::width},
                     {"batch", LayerStack::batch},
                     {"threads", at::get_num_threads()},
                     {"peak_frame_bytes", stack.take_peak_frame_bytes()}},
          .reference = reference,
          .timing = timing,
          .algorithm_bytes_per_s = bytes / timing.ours.median_s};
}

struct Case {
  std::string name;
  Result (*run)(const Plan& plan, LayerStack& stack);
};

const std::vector<Case>& forward_cases() {
  static const std::vector<Case> cases = {
      {"cached",
       [](const Plan& plan, LayerStack& stack) {
         return forward(plan, stack, "cached",
                        {.ours = [&] { stack.forward_from_disk(); },
                         .reference = [&] { stack.forward_in_memory(); },
                         .line_up = [] {}},
                        "the same layers in memory", static_cast<double>(stack.bytes()));
       }},
      {"cached-read",
       [](const Plan& plan, LayerStack& stack) {
         return forward(
             plan, stack, "cached-read",
             {.ours = [&] { stack.forward_from_disk(); }, .reference = [&] { stack.read_file(); }, .line_up = [] {}},
             "reading the file, which is in the system's cache", static_cast<double>(stack.bytes()));
       }},
      {"half-resident",
       [](const Plan& plan, LayerStack& stack) {
         return forward(plan, stack, "half-resident",
                        {.ours = [&] { stack.forward_half_from_disk(); },
                         .reference = [&] { stack.forward_in_memory(); },
                         .line_up = [] {}},
                        "the same layers in memory", static_cast<double>(stack.bytes()));
       }},
      {"cold",
       [](const Plan& plan, LayerStack& stack) {
         return forward(plan, stack, "cold",
                        {.ours = [&] { stack.forward_from_disk(); },
                         .reference = [&] { stack.read_file(); },
                         .line_up =
                             [&, is_end = false]() mutable {  // before a block only
                               if (!std::exchange(is_end, !is_end)) stack.drop_cache();
                             }},
                        "reading the file from the disk", static_cast<double>(stack.bytes()));
       }},
  };
  return cases;
}

double seconds_of(const std::function<void()>& work) {
  const double begin = seconds_now();
  work();
  return seconds_now() - begin;
}

// The baseline is the lower bound: computing with everything in memory, or reading the file, whichever takes longer.
Result dispatched(const Plan& plan, DispatchedHalf& half, LayerStack& stack, bool is_cold) {
  const auto line_up = [&, is_end = false]() mutable {  // before a block only
    if (is_cold && !std::exchange(is_end, !is_end)) half.drop_cache();
  };
  half.forward();
  stack.forward_in_memory();
  half.read_what_is_on_disk();
  if (is_cold) half.drop_cache();
  const auto read_s = seconds_of([&] { half.read_what_is_on_disk(); });
  const auto compute_s = seconds_of([&] { stack.forward_in_memory(); });
  const bool reads_longer = read_s > compute_s;
  const auto timing =
      time_in_pairs({.ours = [&] { half.forward(); },
                     .reference = [&] { reads_longer ? half.read_what_is_on_disk() : stack.forward_in_memory(); },
                     .line_up = line_up},
                    {.blocks = std::min(plan.blocks, max_passes), .steps = 1});
  const auto counters = half.counters();
  return {.name = "paging_forward",
          .params = {{"case", is_cold ? "dispatch-half-cold" : "dispatch-half"},
                     {"layers", stack.layers()},
                     {"width", LayerStack::width},
                     {"batch", LayerStack::batch},
                     {"threads", at::get_num_threads()},
                     {"limit_bytes", half.limit()},
                     {"in_memory_bytes", counters.in_memory},
                     {"peak_frame_bytes", counters.peak_page_bytes},
                     {"on_disk_bytes", counters.on_disk},
                     {"read_s", read_s},
                     {"compute_s", compute_s}},
          .reference = reads_longer ? "reading what is on disk, which takes longer than computing in memory"
                                    : "computing in memory, which takes longer than reading what is on disk",
          .timing = timing,
          .algorithm_bytes_per_s = static_cast<double>(stack.bytes()) / timing.ours.median_s};
}

void check_selection(const Accelerator& accelerator, const Selection& selection) {
  if (accelerator.num_processes() > 1) {
    throw UsageError({.what = "Bench paging was started on several ranks",
                      .why = "it times one rank's memory and disk",
                      .hint = "run it on one rank: hortator bench paging"});
  }
  std::vector<std::string> names = {"operator-untouched", "operator-touched", "dispatch-half", "dispatch-half-cold"};
  for (const auto& known : forward_cases()) names.push_back(known.name);
  check_known("--case", selection.cases, names);
}

}  // namespace

std::vector<Result> paging(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_selection(accelerator, selection);
  set_seed(1);
  std::vector<Result> results;
  if (selection.wants("operator-untouched")) results.push_back(untouched(plan));
  if (selection.wants("operator-touched")) results.push_back(touched(plan));
  std::optional<LayerStack> stack;
  for (const auto& known : forward_cases()) {
    if (!selection.wants(known.name)) continue;
    if (!stack) stack.emplace(plan.folder, selection.sizes.empty() ? LayerStack::usual_bytes : selection.sizes.front());
    results.push_back(known.run(plan, *stack));
  }
  std::optional<DispatchedHalf> half;
  for (const bool is_cold : {false, true}) {
    if (!selection.wants(is_cold ? "dispatch-half-cold" : "dispatch-half")) continue;
    if (!stack) stack.emplace(plan.folder, selection.sizes.empty() ? LayerStack::usual_bytes : selection.sizes.front());
    if (!half) half.emplace(accelerator, plan.folder, *stack);
    results.push_back(dispatched(plan, *half, *stack, is_cold));
  }
  return results;
}

}  // namespace hortator::bench
