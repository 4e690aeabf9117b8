#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "launch/job/sweep.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/job/local_sweep.hpp"
#include "tools/job/making.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options sweep_options() {
  Options options;
  add_job_options(options);
  options.named.add_options()("over", po::value<std::vector<std::string>>()->composing()->value_name("NAME=V,V,..."),
                              "an argument and its values; repeatable: the tasks are all combinations")(
      "at-once", po::value<int>()->value_name("N"), "the number of tasks that may run at the same time");
  return options;
}

int print_sweep_help() {
  std::cout
      << "usage: hortator sweep --over NAME=VALUE,VALUE,... [options] [--submit] -- PROGRAM [ARGUMENTS]\n\n"
         "Runs PROGRAM once for each combination of values, as one job array. {NAME} in its arguments stands for the\n"
         "value; without it, `--NAME VALUE` is appended. Task K has the run folder RUN_DIR/K, with its arguments in\n"
         "task.json; `hortator watch RUN_DIR` shows all of them. All other options are those of `hortator job`.\n"
         "Where there is no scheduler, the tasks run one after the other on this machine.\n\n"
         "  hortator sweep --over lr=0.1,0.01 --over batch-size=32,64 -n 4 --time 00:30:00 --submit -- ./train\n"
         "  hortator sweep --over seed=1,2,3,4 --at-once 2 -n 1 -- ./train --name run-{seed} --seed {seed} > job.sh\n\n"
         "exit code: 0 done; 2 wrong usage; 1 the scheduler refused the job, or a file could not be written; without "
         "a\n"
         "scheduler, that of the first task that has not finished\n\n"
      << sweep_options().named << synonym_help(sweep_options());
  return 0;
}

std::vector<launching::SweepAxis> axes_in(const po::variables_map& values) {
  if (!values.contains("over")) {
    throw UsageError({.what = "What to sweep over is missing", .hint = "such as --over lr=0.1,0.01"});
  }
  std::vector<launching::SweepAxis> axes;
  for (const auto& text : values["over"].as<std::vector<std::string>>())
    axes.push_back(launching::parse_axis(text, "--over"));
  return axes;
}

std::optional<int> at_once(const po::variables_map& values) {
  if (!values.contains("at-once")) return {};
  const int count = values["at-once"].as<int>();
  if (count >= 1) return count;
  throw UsageError({.what = text::concat("--at-once: expected a whole number from 1, got '", count, "'")});
}

}  // namespace

int sweep_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(sweep_options(), "program"));
  if (values.contains("help")) return print_sweep_help();
  const auto axes = axes_in(values);
  const auto limit = at_once(values);
  if (values.contains("program") && !values.contains("submit") && !values.contains("json")) {
    const auto settings = settings_of(values, launching::Scope::job);
    if (has_no_scheduler(settings)) {
      const auto tasks = launching::sweep_tasks(axes, values["program"].as<std::vector<std::string>>());
      return run_sweep_here(settings, tasks, values.contains("dry-run"));
    }
  }
  auto job = described_job(values, "sweep");
  auto command = job.request.arguments;
  command.insert(command.begin(), job.request.program);  // with the path that the job needs
  launching::make_sweep(job, launching::sweep_tasks(axes, command), limit);
  return print_or_submit(std::move(job), values, 1);
}

}  // namespace hortator::tools
