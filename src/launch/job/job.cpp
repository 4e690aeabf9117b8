#include "launch/job/job.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/environment/secrets.hpp"
#include "core/text/text.hpp"
#include "launch/job/directives.hpp"
#include "launch/job/quote.hpp"
#include "launch/job/template.hpp"
#include "launch/request.hpp"
#include "launch/settings/walltime.hpp"

namespace hortator::launching {
namespace {

// A job requests whole nodes with the same number of ranks each.
void complete_request(LaunchRequest& request) {
  if (!request.nodes) request.nodes = 1;
  if (!request.ranks_per_node) {
    if (request.ranks % *request.nodes != 0) {
      throw UsageError(
          {.what = text::concat(request.ranks, " ranks do not divide evenly over ", *request.nodes, " nodes"),
           .hint = "use --ranks-per-node"});
    }
    request.ranks_per_node = request.ranks / *request.nodes;
  }
}

std::string name_from(std::string_view program) {
  std::string name(text::file_name(program));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-');
      },
      '_');
  return name;
}

std::string export_line(const std::string& variable) {
  const auto end = variable.find('=');
  return text::concat("export ", variable.substr(0, end), '=', shell_quote(variable.substr(end + 1)));
}

std::vector<std::string> exports(const Job& job) {
  std::vector<std::string> lines;
  for (const auto& variable : job.request.variables) lines.push_back(export_line(variable));
  return lines;
}

std::vector<std::string> module_lines(const Job& job) {
  std::vector<std::string> lines;
  for (const auto& name : job.settings.list("modules")) lines.push_back("module load " + shell_quote(name));
  return lines;
}

// srun passes all variables on. Other launchers differ in how they do; env works with all of them.
std::vector<std::string> variable_arguments(const Job& job) {
  if (job.scheduler == Scheduler::slurm) return {};
  std::vector<std::string> arguments = {"env"};
  for (const auto& variable : job.request.variables) arguments.push_back(variable);
  // PBS sets it to the CPUs of all ranks of a node.
  if (!job.request.threads) arguments.push_back(text::concat("OMP_NUM_THREADS=", cpus_per_rank(job).value_or(1)));
  return arguments;
}

std::vector<std::string> launcher_arguments(LaunchRequest request, const LaunchEnvironment& environment) {
  request.variables.clear();
  request.arguments.clear();
  request.program = "program";
  auto arguments = command_line(request, environment);
  // The script passes variables separately.
  arguments.erase(std::find_if(arguments.begin(), arguments.end(),
                               [](const auto& argument) { return argument == "env" || argument == "program"; }),
                  arguments.end());
  return arguments;
}

LaunchRequest one_on_each_node(const Job& job) {
  const int nodes = *job.request.nodes + job.spare_nodes;
  return {.ranks = nodes, .nodes = nodes, .ranks_per_node = 1};
}

LaunchEnvironment environment_in_job(const Job& job, LaunchEnvironment environment) {
  environment.in_slurm = job.scheduler == Scheduler::slurm;
  environment.in_flux = job.scheduler == Scheduler::flux;
  environment.in_other_batch_job = !environment.in_slurm;
  // The script detects on the node whether Open MPI needs the scheduler's list of nodes.
  environment.node_file.clear();
  environment.cpus_per_task = cpus_per_rank(job);
  if (!environment.in_slurm && !environment.in_flux)
    environment.pbs_cpus = job.request.ranks * environment.cpus_per_task.value_or(1);
  return environment;
}

// Lines of a `case`: the program of each task of a sweep.
std::vector<std::string> task_lines(const Job& job) {
  if (job.sweep.empty()) return {};
  // Slurm has a script of its own; in the other one, tasks count from 0 under all schedulers.
  const auto* index = job.scheduler == Scheduler::slurm ? "SLURM_ARRAY_TASK_ID" : "task_number";
  std::vector<std::string> lines = {
      text::concat("case ${", index, ":?This is an array: submit it, rather than starting it} in")};
  for (std::size_t i = 0; i < job.sweep.size(); ++i) {
    lines.push_back(text::concat("  ", i, ") program=(", shell_line(job.sweep[i].command),
                                 ") task=", shell_quote(to_json(job.sweep[i], static_cast<int>(i))), " ;;"));
  }
  lines.emplace_back("esac");
  return lines;
}

// What the reader of a script may want to know, and change.
std::vector<std::string> note_lines(const Job& job) {
  std::vector<std::string> lines = {"# It may use " + budget_of(job, 1) + "."};
  if (const auto cpus = cpus_per_rank(job)) {
    auto line = text::concat("# CPUs per rank: ", *cpus);
    if (!job.request.threads)
      line += text::concat(", of ", *job.cpus_per_node, " per node", job.cpus_source.empty() ? "" : " by ",
                           job.cpus_source);
    lines.push_back(line + ".");
  }
  return lines;
}

std::vector<std::string> head_lines(const Job& job) {
  auto lines = directives(job);
  for (auto& line : lines) line.insert(0, facts_of(job.scheduler).prefix);
  return lines;
}

std::vector<std::string> lines_in(const std::string& text) {
  auto lines = text::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// How the reader of a script submits it again.
std::string submits_text(const SchedulerFacts& scheduler) {
  if (scheduler.scheduler == Scheduler::flux) return "flux batch";
  return scheduler.scheduler == Scheduler::lsf ? "bsub <" : std::string(scheduler.submits);
}

}  // namespace

void make_sweep(Job& job, std::vector<SweepTask> tasks, std::optional<int> at_once) {
  if (job.array) {
    throw UsageError({.what = "--array cannot be used in a sweep",
                      .why = "the sweep is an array of its own",
                      .hint = "use --at-once N to limit how many tasks run at the same time"});
  }
  const auto count = static_cast<long long>(tasks.size());
  job.array = ArrayTasks{.numbers = text::concat("0-", count - 1), .at_once = at_once, .count = count};
  job.sweep = std::move(tasks);
}

std::string budget_of(const Job& job, int chain_length) {
  const long long starts =
      static_cast<long long>(chain_length) * (1 + (job.scheduler == Scheduler::slurm ? job.requeues : 0));
  const long long tasks = job.array ? job.array->count : 1;
  const int nodes = *job.request.nodes + job.spare_nodes;
  const double hours = static_cast<double>(starts * tasks * nodes * job.seconds) / 3600;
  std::string text = starts > 1 ? text::concat("up to ", starts, " x ", walltime(job.seconds)) : walltime(job.seconds);
  if (tasks > 1) text += text::concat(" for each of ", tasks, " tasks");
  return text + text::concat(" on ", text::count(nodes, "node"), " = ", text::print("%.4g", hours),
                             hours == 1 ? " node hour" : " node hours");
}

std::optional<int> cpus_per_rank(const Job& job) {
  if (job.request.threads) return job.request.threads;
  if (!job.cpus_per_node) return std::nullopt;
  return std::max(1, *job.cpus_per_node / *job.request.ranks_per_node);
}

Job job_of(const Settings& settings, Scheduler scheduler, std::string program, std::vector<std::string> arguments) {
  Job job{.scheduler = scheduler,
          .name = settings.word("job_name").value_or(name_from(program)),
          .request = request_of(settings),
          .seconds = *parse_walltime(*settings.word("time")),
          .warning_seconds = *settings.number("warning_seconds"),
          .spare_nodes = *settings.number("spare_nodes"),
          .restarts = *settings.number("max_restarts"),
          .requeues = *settings.number("requeues"),
          .cpus_per_node = settings.number("cpus_per_node"),
          .cpus_source = settings.find("cpus_per_node") != nullptr ? settings.find("cpus_per_node")->origin : "",
          .run_dir = settings.word("run_dir").value_or("runs/" + std::string(text::file_name(program))),
          .settings = settings};
  if (const auto array = settings.word("array")) job.array = parse_array(*array);
  complete_request(job.request);
  job.request.program = std::move(program);
  job.request.arguments = std::move(arguments);
  if (job.warning_seconds >= job.seconds) {
    throw UsageError({.what = text::concat("A warning ", job.warning_seconds, " s before the end of a job of ",
                                           walltime(job.seconds), " comes before the job begins"),
                      .hint = "increase --time or reduce --warning-seconds"});
  }
  return job;
}

std::string render(const Job& job, const LaunchEnvironment& environment, const Templates& templates) {
  const auto here = environment_in_job(job, environment);
  auto program = std::vector<std::string>{job.request.program};
  program.insert(program.end(), job.request.arguments.begin(), job.request.arguments.end());
  const auto& request = job.request;
  const auto& scheduler = facts_of(job.scheduler);
  const TemplateValues values = {
      .texts = {{"title", "The job " + job.name + ": " + text::count(request.ranks, "rank") + " on " +
                              text::count(*request.nodes, "node")},
                {"launcher", shell_line(launcher_arguments(request, here))},
                {"one_each", shell_line(launcher_arguments(one_on_each_node(job), here))},
                {"open_mpi", environment.mpi == MpiFlavor::open_mpi && !here.in_flux ? "yes" : "no"},
                {"scheduler", std::string(scheduler.title)},
                {"submits", submits_text(scheduler)},
                {"pass", shell_line(variable_arguments(job))},
                {"program", shell_line(program)},
                {"nodes", std::to_string(*request.nodes)},
                {"per_node", std::to_string(*request.ranks_per_node)},
                {"cpus", std::to_string(cpus_per_rank(job).value_or(1))},
                {"gpus", std::to_string(request.gpus_per_node.value_or(0))},
                {"restarts", std::to_string(job.restarts)},
                {"requeues", std::to_string(job.requeues)},
                {"seconds", std::to_string(job.seconds)},
                {"warning", std::to_string(job.warning_seconds)},
                {"run_dir", shell_quote(job.run_dir)},
                {"log_dir", shell_quote(request.log_dir)},
                {"folder", shell_quote(job.folder)},
                {"stamp", job.stamp.empty() ? "$job" : job.stamp},
                {"chain", job.is_chain ? "yes" : "no"},
                {"secrets", core::secret_names()}},
      .lines = {{"directives", directives(job)},
                {"exports", exports(job)},
                {"modules", module_lines(job)},
                {"notes", note_lines(job)},
                {"tasks", task_lines(job)},
                {"head", head_lines(job)},
                {"part", lines_in(templates.part)},
                {"agent", text::split(templates.agent, '\n')},
                {"common", text::split(templates.common, '\n')}}};
  return fill(templates.script, values);
}

}  // namespace hortator::launching
