#include "launch/job/job.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/directives.hpp"
#include "launch/job/quote.hpp"
#include "launch/job/template.hpp"
#include "launch/job/walltime.hpp"
#include "launch/settings/request.hpp"

namespace hortator::launching {
namespace {

// A job asks for whole nodes of equal ranks.
void complete(Request& request) {
  if (!request.nodes) request.nodes = 1;
  if (!request.ranks_per_node) {
    if (request.ranks % *request.nodes != 0) {
      throw UsageError({.what = text::concat(request.ranks, " ranks do not go evenly on ", *request.nodes, " nodes"),
                        .hint = "say --ranks-per-node"});
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
  auto variables = job.settings.list("environment");
  variables.insert(variables.end(), job.request.variables.begin(), job.request.variables.end());
  variables.push_back("HORTATOR_RUN_DIR=" + job.run_dir);
  std::vector<std::string> lines;
  for (const auto& variable : variables) lines.push_back(export_line(variable));
  return lines;
}

std::vector<std::string> module_lines(const Job& job) {
  std::vector<std::string> lines;
  for (const auto& name : job.settings.list("modules")) lines.push_back("module load " + shell_quote(name));
  return lines;
}

// srun takes all variables along by itself; of the others each has a way of its own, and env works with all.
std::vector<std::string> passed_on(const Job& job) {
  if (job.scheduler == Scheduler::slurm) return {};
  std::vector<std::string> words = {"env"};
  for (const auto& variable : job.settings.list("environment")) words.push_back(variable);
  for (const auto& variable : job.request.variables) words.push_back(variable);
  words.push_back("HORTATOR_RUN_DIR=" + job.run_dir);
  return words;
}

std::vector<std::string> launcher_words(Request request, const Facts& facts) {
  request.variables.clear();
  request.arguments.clear();
  request.program = "program";
  auto words = command_line(request, facts);
  // Variables have a place of their own in the script.
  words.erase(
      std::find_if(words.begin(), words.end(), [](const auto& word) { return word == "env" || word == "program"; }),
      words.end());
  return words;
}

Request one_on_each_node(const Job& job) {
  return {.ranks = *job.request.nodes, .nodes = job.request.nodes, .ranks_per_node = 1};
}

Facts facts_in_job(const Job& job, Facts facts) {
  facts.in_slurm = job.scheduler == Scheduler::slurm;
  facts.in_other_batch_job = !facts.in_slurm;
  // The script finds out on the node whether Open MPI has to be told of PBS.
  facts.pbs_node_file.clear();
  facts.cpus_per_task = job.request.threads;
  if (!facts.cpus_per_task && job.cpus_per_node) {
    facts.cpus_per_task = std::max(1, *job.cpus_per_node / *job.request.ranks_per_node);
  }
  return facts;
}

}  // namespace

Job job_of(const Settings& settings, Scheduler scheduler, std::string program, std::vector<std::string> arguments,
           const std::string& stamp) {
  Job job{.scheduler = scheduler,
          .name = settings.word("job_name").value_or(name_from(program)),
          .request = request_of(settings),
          .seconds = *parse_walltime(*settings.word("time")),
          .warning_seconds = *settings.number("warning_seconds"),
          .spare_nodes = *settings.number("spare_nodes"),
          .restarts = *settings.number("max_restarts"),
          .requeues = *settings.number("requeues"),
          .cpus_per_node = settings.number("cpus_per_node"),
          .run_dir = settings.word("run_dir").value_or("runs/" + std::string(text::file_name(program))),
          .settings = settings};
  job.records = job.run_dir + "/jobs/" + stamp;
  complete(job.request);
  job.request.program = std::move(program);
  job.request.arguments = std::move(arguments);
  if (job.warning_seconds >= job.seconds) {
    throw UsageError({.what = text::concat("a warning ", job.warning_seconds, " s before the end of ",
                                           walltime(job.seconds), " comes before the job begins"),
                      .hint = "ask for more --time, or for fewer --warning-seconds"});
  }
  return job;
}

std::string render(const Job& job, const Facts& facts, const Templates& templates) {
  const auto here = facts_in_job(job, facts);
  auto program = std::vector<std::string>{job.request.program};
  program.insert(program.end(), job.request.arguments.begin(), job.request.arguments.end());
  const auto& request = job.request;
  const Filling filling = {.words = {{"title", "The job " + job.name + ": " + text::count(request.ranks, "rank") +
                                                   " on " + text::count(*request.nodes, "node")},
                                     {"launcher", shell_line(launcher_words(request, here))},
                                     {"one_each", shell_line(launcher_words(one_on_each_node(job), here))},
                                     {"open_mpi", facts.mpi == MpiFlavor::open_mpi ? "yes" : "no"},
                                     {"pass", shell_line(passed_on(job))},
                                     {"program", shell_line(program)},
                                     {"nodes", std::to_string(*request.nodes)},
                                     {"per_node", std::to_string(*request.ranks_per_node)},
                                     {"gpus", std::to_string(request.gpus_per_node.value_or(0))},
                                     {"restarts", std::to_string(job.restarts)},
                                     {"requeues", std::to_string(job.requeues)},
                                     {"seconds", std::to_string(job.seconds)},
                                     {"warning", std::to_string(job.warning_seconds)},
                                     {"run_dir", shell_quote(job.run_dir)},
                                     {"records", shell_quote(job.records)}},
                           .lines = {{"directives", directives(job)},
                                     {"exports", exports(job)},
                                     {"modules", module_lines(job)},
                                     {"common", text::split(templates.common, '\n')}}};
  return fill(templates.scheduler, filling);
}

}  // namespace hortator::launching
