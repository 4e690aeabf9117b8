// Training along a pipeline is that of one rank: losses, norms, weights, checkpoints, whatever the schedule.
#include <unistd.h>

#include <cstdlib>
#include <hortator/training/gradient_norms.hpp>

#include "parallel/pipeline/staged_module.hpp"
#include "support/written.hpp"
#include "unit/accelerator/pipeline/pipeline_course.hpp"

using namespace hortator;
using namespace hortator::test::pipelines;

namespace {

/// Compares each schedule with one rank's training.
void check_schedules(const Plan& plan, std::initializer_list<std::int64_t> micro_batches) {
  const auto expected = course_of_one(plan);
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                              PipelineSchedule::zero_bubble}) {
    for (const auto micro : micro_batches) {
      const bool takes_turns = schedule == PipelineSchedule::interleaved;
      if (takes_turns && micro % std::max<std::int64_t>(1, micro / ranks()) != 0) continue;
      INFO("schedule " << static_cast<int>(schedule) << ", " << micro << " micro-batches, recomputes "
                       << plan.recomputes);
      auto pipelined = plan;
      pipelined.options.parallel = stages(ranks(), schedule);
      pipelined.micro_batches = micro;
      check_near(train(pipelined), expected);
    }
  }
}

}  // namespace

TEST_CASE("every schedule has the losses, norms and weights of one rank", "[pipeline]") {
  for (const bool recomputes : {false, true}) check_schedules({.recomputes = recomputes}, {1, 4, 12});
}

TEST_CASE("after fifty steps every schedule has the losses of one rank", "[.][fifty_steps]") {
  for (const bool recomputes : {false, true}) {
    for (const bool is_tied : {false, true})
      check_schedules({.steps = 50, .recomputes = recomputes, .is_tied = is_tied}, {1, 2, 3, 4, 5, 8, 11, 16});
  }
}

TEST_CASE("sums and counts, untied heads, accumulation and 16 bits are those of one rank", "[pipeline]") {
  const auto both = [](Plan plan, double tolerance = 1e-5) {
    const auto expected = course_of_one(plan);
    plan.options.parallel = stages(ranks());
    check_near(train(plan), expected, tolerance);
  };
  both({.counts = true});
  both({.is_tied = false});
  both({.dropout = 0.3});
  both({.recomputes = true, .dropout = 0.3});
  both({.options = {.gradient_accumulation_steps = 2}});
  both({.options = {.gradient_accumulation_steps = 2}, .counts = true});
  both({.options = {.mixed_precision = Precision::bf16}}, 2e-2);
  both({.options = {.mixed_precision = Precision::fp16}}, 2e-3);
}

TEST_CASE("replicas of a pipeline average their gradients, with ZeRO 1 as well", "[pipeline]") {
  if (ranks() != 4) return;
  const auto expected = course_of_one({.counts = true});
  check_near(train({.options = {.parallel = stages(2)}, .micro_batches = 3, .counts = true}), expected);
  check_near(train({.options = {.zero = {.stage = 1}, .parallel = stages(2)}, .micro_batches = 3}), course_of_one({}));
}

TEST_CASE("a pipeline's checkpoints resume on one rank, and those of one rank along a pipeline", "[pipeline]") {
  Accelerator outside;
  const test::Folder folder(outside, "pipeline_state");
  const auto whole = course_of_one({.steps = 6});
  auto pipelined = stages(ranks());
  train({.options = {.parallel = pipelined}, .steps = 3, .save = folder.path() / "stages"});
  auto rest = whole;
  rest.losses.erase(rest.losses.begin(), rest.losses.begin() + (rest.losses.empty() ? 0 : 3));
  rest.norms.erase(rest.norms.begin(), rest.norms.begin() + (rest.norms.empty() ? 0 : 3));
  check_near(course_of_one({.first = 3, .steps = 3, .load = folder.path() / "stages"}), rest);
  course_of_one({.steps = 3, .save = folder.path() / "one"});
  outside.wait_for_everyone();
  check_near(train({.options = {.parallel = pipelined}, .first = 3, .steps = 3, .load = folder.path() / "one"}), rest);
  pipelined.pipeline_schedule = PipelineSchedule::interleaved;
  check_near(train({.options = {.parallel = pipelined}, .first = 3, .steps = 3, .load = folder.path() / "stages"}),
             rest);
  if (ranks() != 4) return;
  const AcceleratorOptions sharded = {.zero = {.stage = 1}, .parallel = stages(2)};
  train({.options = sharded, .micro_batches = 2, .steps = 3, .save = folder.path() / "sharded"});
  check_near(course_of_one({.first = 3, .steps = 3, .load = folder.path() / "sharded"}), rest);
  check_near(train({.options = sharded, .micro_batches = 2, .first = 3, .steps = 3, .load = folder.path() / "stages"}),
             rest);
}

TEST_CASE("save_model() writes each stage's weights once", "[pipeline]") {
  Accelerator outside;
  const test::Folder folder(outside, "pipeline_model");
  const auto course = train({.options = {.parallel = stages(ranks())}, .model = folder.path()});
  Chain net(8);
  Accelerator accelerator;
  auto model = accelerator.prepare(net);
  accelerator.load_checkpoint_in_model(model, folder.path());
  if (accelerator.is_main_process()) CHECK(distance(accelerator.get_state_dict(model), course.weights) == 0);
}

TEST_CASE("a rank has memory for the parameters of its stages only", "[pipeline]") {
  Accelerator accelerator({.parallel = stages(ranks())});
  auto net = construct_deferred([] { return Chain(48, false, false); });
  auto model = accelerator.prepare(net);
  std::int64_t own = 0, all = net->head->weight.numel();  // counts as layers of the last stage do
  for (const auto& parameter : net->layers->parameters()) {
    all += parameter.numel();
    own += parallel::is_of_other_stage(parameter) ? 0 : parameter.numel();
  }
  CHECK(static_cast<double>(own) <= 1.05 * static_cast<double>(all) / ranks());
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) CHECK(same_everywhere(parameter));
  }
  if (ranks() > 1)
    CHECK(parallel::is_of_other_stage(accelerator.is_main_process() ? net->head->weight : net->embed->weight));
}

TEST_CASE("norms of batches are saved by the stage that has them", "[pipeline]") {
  // one micro-batch: its statistics are those of the whole batch
  Plan plan{.micro_batches = 1, .has_batch_statistics = true};
  const auto expected = course_of_one(plan);
  plan.options.parallel = stages(ranks());
  check_near(train(plan), expected);
}

TEST_CASE("gradient_norms() has the parameters of all stages", "[pipeline]") {
  const auto norms = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    set_seed(4);
    Chain net(8);
    use_running_statistics(*net);
    auto model = accelerator.prepare(net);
    const auto loss = [](auto& model, Words& part) {
      return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
    };
    accelerator.pipeline_step(model, batch_of(2), loss);
    return gradient_norms(accelerator, model).norms;
  };
  const auto found = norms({.parallel = stages(ranks())});
  const test::FirstRanks first(1);
  if (first.is_in()) CHECK(at::allclose(found, norms({.communicator = first.handle()}), 1e-4, 1e-7));
}

TEST_CASE("stages whose parameters are frozen have part in norms, and are no reason for a warning", "[pipeline]") {
  const auto numbers = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    set_seed(4);
    Chain net(8, /*recomputes=*/false, /*is_tied=*/false);
    use_running_statistics(*net);
    for (auto& parameter : net->parameters()) parameter.requires_grad_(false);
    net->head->weight.requires_grad_(true);
    auto model = accelerator.prepare(net);
    const auto loss = [](auto& model, Words& part) {
      return at::cross_entropy_loss(model(part.ids).flatten(0, 1), part.targets.flatten());
    };
    accelerator.pipeline_step(model, batch_of(2), loss);
    const auto norm = accelerator.clip_grad_norm_(net->head->parameters(), 1e9);
    return std::pair(gradient_norms(accelerator, model).norms, norm.item<double>());
  };
  for (const auto* debug : {"0", "1"}) {
    INFO("HORTATOR_DEBUG=" << debug);
    setenv("HORTATOR_DEBUG", debug, 1);
    std::pair<at::Tensor, double> found;
    const auto warnings = test::written_to(STDERR_FILENO, [&] { found = numbers({.parallel = stages(ranks())}); });
    unsetenv("HORTATOR_DEBUG");
    CHECK(warnings.find("reaches no prepared model") == std::string::npos);
    CHECK(found.first.numel() == 1);
    CHECK(found.first.item<double>() == Approx(found.second));
    const test::FirstRanks first(1);
    if (first.is_in()) CHECK(at::allclose(found.first, numbers({.communicator = first.handle()}).first, 1e-4, 1e-7));
  }
}
