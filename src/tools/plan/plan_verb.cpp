#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/whole_file.hpp"
#include "planning/choice.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/plan/check.hpp"
#include "tools/plan/plan_view.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

constexpr std::size_t runs_shown = 10;

Options plan_options() {
  Options options;
  options.ends_at_text = true;
  options.named.add_options()("ranks,n", po::value<int>()->value_name("N"), "ranks of the run")(
      "nodes", po::value<int>()->value_name("N"), "its nodes, in place of --ranks")(
      "ranks-per-node", po::value<int>()->value_name("N"), "ranks of a node; those of the machine file, or 8")(
      "machine", po::value<std::string>()->value_name("FILE"),
      "memory and rates of the machine, from hortator bench machine")(
      "memory", po::value<std::string>()->value_name("SIZE"), "memory of a rank, such as 80GiB")(
      "16bit", "the program computes in bf16 or fp16")(
      "rehearse", po::value<int>()->default_value(static_cast<int>(2 * runs_shown))->value_name("N"),
      "runs that are rehearsed at most, for their exact memory; 0: none")(
      "offload", "also consider optimizer states, and parameters of stage 3, in the host's memory")(
      "why", po::value<std::string>()->value_name("SETTING"),
      "why the best run does not have it: tensor, zero=3, pipeline=4")(
      "check", "run the best three here, and print what they take beside the prediction")(
      "json", "print one JSON object instead of text")("help,h", "print this help");
  return options;
}

int print_plan_help() {
  std::cout
      << "usage: hortator plan --ranks N|--nodes N [--memory SIZE] [--machine FILE] [options] -- PROGRAM "
         "[ARGUMENTS]\n\n"
         "Finds the settings of hortator launch with which PROGRAM fits into the memory of N ranks and is fastest. It\n"
         "rehearses PROGRAM on one and two ranks, costs every combination of tensor, context and pipeline ranks, ZeRO\n"
         "stage, recomputation, schedule and micro-batches, and rehearses the best ones: their memory is exact, their\n"
         "times are estimates. PROGRAM must leave these settings to the launcher; those that it sets stay as they "
         "are.\n\n"
         "With --check the best three run here for a few updates, on as many ranks as there are cores or nodes of the\n"
         "job, and their memory and times are printed beside those predicted.\n\n"
         "  hortator plan --nodes 8 --memory 80GiB -- ./train --batch-size 512\n"
         "  hortator plan -n 64 --machine machine.json --why zero=3 -- ./train\n"
         "  hortator plan -n 2 --check -- ./train\n\n"
         "exit code: 0 a run fits; 1 none does, the program fails, or one that is checked does; 2 wrong usage\n\n"
      << plan_options().named;
  return 0;
}

// Rates of a common node with eight GPUs, to order runs by.
planning::Machine assumed_machine() {
  return {.name = "assumed",
          .ranks_per_node = usual_ranks_of_a_node,
          .memory = std::uint64_t{80} << 30,
          .flops_fp32 = 4e13,
          .flops_16bit = 4e14,
          .within_node = {.bytes_per_second = 2e11, .latency = 1e-5},
          .between_nodes = {.bytes_per_second = 2.5e10, .latency = 2e-5},
          .disk_bytes_per_second = 2e9};
}

int positive_or(const po::variables_map& values, const char* name, int otherwise) {
  const int number = values.contains(name) ? values[name].as<int>() : otherwise;
  if (number >= 1) return number;
  throw UsageError({.what = text::concat("--", name, ": expected a whole number from 1, got ", number)});
}

planning::Machine machine_of(const po::variables_map& values) {
  auto machine = assumed_machine();
  if (values.contains("machine")) {
    const auto file = values["machine"].as<std::string>();
    const auto text = core::read_whole(file);
    if (!text)
      throw UsageError({.what = text::concat("--machine: ", text::quote(file), " cannot be read"),
                        .hint = "write it with hortator bench machine"});
    machine = planning::parse_machine(*text, file);
  }
  machine.ranks_per_node = positive_or(values, "ranks-per-node", machine.ranks_per_node);
  if (values.contains("memory")) machine.memory = units::parse_bytes(values["memory"].as<std::string>());
  return machine;
}

RunPlan asked_plan(const po::variables_map& values) {
  if (!values.contains("program")) {
    throw UsageError(
        {.what = "The program is missing", .hint = "name it after --: hortator plan --ranks 64 -- ./train"});
  }
  if (values.contains("ranks") == values.contains("nodes")) {
    throw UsageError({.what = "Expected the size of the run by either --ranks or --nodes",
                      .hint = "use --ranks 64, or --nodes 8 with --ranks-per-node 8"});
  }
  RunPlan plan{.machine = machine_of(values),
               .assumes_machine = !values.contains("machine"),
               .command = values["program"].as<std::vector<std::string>>()};
  plan.ranks = values.contains("ranks") ? positive_or(values, "ranks", 1)
                                        : positive_or(values, "nodes", 1) * plan.machine.ranks_per_node;
  plan.machine.ranks_per_node = std::min(plan.machine.ranks_per_node, plan.ranks);
  return plan;
}

bool is_variant(const planning::Candidate& a, const planning::Candidate& b) {
  return a.data == b.data && a.tensor == b.tensor && a.context == b.context && a.pipeline == b.pipeline;
}

// At most two of one mesh, so that ten runs are ten choices.
bool has_enough_of(const RunPlan& plan, const planning::Candidate& candidate) {
  const auto same = [&](const PlannedRun& run) { return is_variant(run.cost.candidate, candidate); };
  return std::ranges::count_if(plan.best, same) >= 2;
}

void choose(RunPlan& plan, const std::vector<planning::Costed>& all, int max_rehearsed) {
  int count = 0;
  for (const auto& one : all) {
    if (plan.best.size() == runs_shown || (max_rehearsed > 0 && count == max_rehearsed)) break;
    if (has_enough_of(plan, one.candidate)) continue;
    if (max_rehearsed == 0) {
      auto& into = one.fits(plan.machine.memory) ? plan.best : plan.rejected;
      if (into.size() < runs_shown) into.push_back({.cost = one});
      continue;
    }
    auto run = rehearsed_run(plan, one);
    ++count;
    const bool is_good = run.problem.empty() && run.cost.fits(plan.machine.memory);
    (is_good ? plan.best : plan.rejected).push_back(std::move(run));
  }
  std::ranges::stable_sort(plan.best, std::greater(), [](const PlannedRun& run) { return run.cost.throughput; });
}

}  // namespace

int plan_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(plan_options(), "program"));
  if (values.contains("help")) return print_plan_help();
  auto plan = asked_plan(values);
  const int max_rehearsed = values["rehearse"].as<int>();
  if (max_rehearsed < 0)
    throw UsageError({.what = text::concat("--rehearse: expected a whole number from 0, got ", max_rehearsed)});
  check_program(plan.command.front());
  plan.probed = probe(plan.command, values.contains("16bit"));
  auto choices = plan.probed.possible;
  choices.ranks = plan.ranks;
  choices.ranks_per_node = plan.machine.ranks_per_node;
  choices.offload = values.contains("offload");
  const auto all = planning::ranked(plan.probed.facts, choices, plan.machine);
  choose(plan, all, max_rehearsed);
  if (values.contains("check")) plan.checked = checked_runs(plan);
  std::cout << (values.contains("json") ? plan_json(plan) : plan_text(plan));
  if (values.contains("why")) std::cout << '\n' << why_text(plan, all, values["why"].as<std::string>());
  const auto has_failed = [](const CheckedRun& run) { return !run.problem.empty(); };
  return plan.best.empty() || std::ranges::any_of(plan.checked, has_failed) ? 1 : 0;
}

}  // namespace hortator::tools
