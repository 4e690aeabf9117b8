#include "launch/job/directives.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/conflicts.hpp"
#include "launch/job/directive_values.hpp"
#include "launch/job/other_directives.hpp"
#include "launch/settings/walltime.hpp"

namespace hortator::launching {
namespace {

using Lines = DirectiveLines;

constexpr std::string_view dependency_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@%/-?[]";

// Its tasks would share one run folder.
void refuse_array(const std::string& line, Scheduler scheduler) {
  const auto begins_with = [&](std::initializer_list<std::string_view> options) {
    return std::ranges::any_of(options, [&](std::string_view option) { return line.starts_with(option); });
  };
  const bool is_array = (scheduler == Scheduler::slurm && begins_with({"--array", "-a"})) ||
                        (scheduler == Scheduler::pbs && begins_with({"-J"})) ||
                        (scheduler == Scheduler::lsf && begins_with({"-J"}) && line.find('[') != std::string::npos) ||
                        (scheduler == Scheduler::grid_engine && begins_with({"-t "}));
  if (!is_array) return;
  throw UsageError({.what = "--directive: " + text::quote(line) + " makes an array",
                    .why = "without --array its tasks would write to the same run folder",
                    .hint = "use --array 0-3"});
}

// Only options of Slurm and Flux begin with two dashes.
bool has_long_options(Scheduler scheduler) { return scheduler == Scheduler::slurm || scheduler == Scheduler::flux; }

// Unchanged, but each must be a single line that is an option.
void add_verbatim(Lines& lines, const Job& job) {
  const auto characters = std::string(with_operators) + " ";
  for (const auto& line : job.settings.list("directives")) {
    refuse_array(line, job.scheduler);
    if (!line.starts_with('-'))
      throw UsageError({.what = "--directive: expected a line that begins with '-', got " + text::quote(line)});
    if (!has_long_options(job.scheduler) && line.starts_with("--")) {
      const auto title = facts_of(job.scheduler).title;
      throw UsageError({.what = text::concat(text::quote(line), " is an option of Slurm, and this job is for ", title),
                        .hint = text::concat("use --directive with ", title, "'s counterpart")});
    }
    lines.push_back(checked_value(line, "directive", characters));
  }
}

int total_nodes(const Job& job) { return *job.request.nodes + job.spare_nodes; }

// In the existing folder for output. A script that is only printed must not name a folder that may not exist.
std::string output_file(const Job& job) {
  checked_value(job.run_dir, "run_dir");
  if (const auto chosen = job.settings.word("output")) return checked_value(*chosen, "output");
  const std::string name = job.array ? "%A_%a.out" : "%j.out";
  return checked_value(job.output.empty() ? "%x-" + name : job.output + "/" + name, "run_dir");
}

std::string array_text(const ArrayTasks& array) {
  return array.numbers + (array.at_once ? text::concat('%', *array.at_once) : "");
}

void add_memory(Lines& lines, const Job& job) {
  add_directive(lines, job, "mem", "--mem=");
  add_directive(lines, job, "mem_per_cpu", "--mem-per-cpu=");
}

Lines slurm(const Job& job) {
  Lines lines = {"--job-name=" + checked_value(job.name, "job_name"),
                 text::concat("--nodes=", total_nodes(job)),
                 text::concat("--ntasks-per-node=", *job.request.ranks_per_node),
                 "--time=" + walltime(job.seconds),
                 text::concat("--signal=B:USR1@", job.warning_seconds),
                 job.requeues > 0 ? "--requeue" : "--no-requeue",
                 "--open-mode=append",
                 "--output=" + output_file(job)};
  if (const auto cpus = cpus_per_rank(job)) lines.push_back(text::concat("--cpus-per-task=", *cpus));
  if (job.request.gpus_per_node.value_or(0) > 0) {
    lines.push_back("--gpus-per-node=" + gpus_text(job.request));
  }
  if (job.array) lines.push_back("--array=" + array_text(*job.array));
  if (job.settings.is_on("exclusive")) lines.emplace_back("--exclusive");
  add_memory(lines, job);
  add_directive(lines, job, "error", "--error=");
  add_directive(lines, job, "dependency", "--dependency=", dependency_characters);
  if (job.restarts > 0) lines.emplace_back("--no-kill");
  add_directive(lines, job, "account", "--account=");
  add_directive(lines, job, "queue", "--partition=");
  add_directive(lines, job, "qos", "--qos=");
  add_directive(lines, job, "constraint", "--constraint=", with_operators);
  add_directive(lines, job, "reservation", "--reservation=");
  add_directive(lines, job, "licenses", "--licenses=");
  if (job.settings.word("mail") || job.settings.word("mail_type"))
    lines.push_back("--mail-type=" + checked_value(job.settings.word("mail_type").value_or("END,FAIL"), "mail_type"));
  add_directive(lines, job, "mail", "--mail-user=");
  return lines;
}

std::string select(const Job& job) {
  const auto& request = job.request;
  const int ranks = *request.ranks_per_node;
  auto line = text::concat("-l select=", total_nodes(job), ":ncpus=", cpus_of_node(job), ":mpiprocs=", ranks);
  // PBS would set OMP_NUM_THREADS to ncpus for every rank.
  line += text::concat(":ompthreads=", cpus_per_rank(job).value_or(1));
  if (request.gpus_per_node.value_or(0) > 0) line += text::concat(":ngpus=", *request.gpus_per_node);
  if (const auto memory = memory_of_node(job)) line += text::concat(":mem=", *memory, "mb");
  for (const auto& resource : job.settings.list("chunk_resources"))
    line += ":" + checked_value(resource, "chunk_resources");
  return line;
}

// Settings without an equivalent in PBS are errors, rather than being ignored.
void refuse_slurm_settings(const Job& job) {
  for (const auto* key : {"qos", "constraint", "licenses"}) {
    if (!job.settings.find(key)) continue;
    throw UsageError({.what = text::concat(job.settings.find(key)->origin, ": ", text::quote(*job.settings.word(key)),
                                           " works only with Slurm, and this is a PBS job"),
                      .hint = "use --directives with your site's equivalent"});
  }
  if (job.settings.find("reservation")) {
    throw UsageError(
        {.what = "--reservation: PBS treats a reservation as a queue", .hint = "use --queue R123 instead"});
  }
  if (!job.request.gpu_types.empty()) {
    throw UsageError(
        {.what = "--gpus-per-node: PBS has no common name for the type in " + text::quote(job.request.gpu_types),
         .hint = "use --gpus-per-node N and --chunk-resources with your site's name: --chunk-resources gpu_type=a100"});
  }
  if (job.settings.word("dependency") == "singleton") {
    throw UsageError(
        {.what = "--dependency: 'singleton' works only with Slurm, and this is a PBS job", .hint = "use afterany:JOB"});
  }
  if (job.array && !job.array->is_one_range()) {
    throw UsageError({.what = "--array: expected one range such as 0-3, got " + text::quote(job.array->numbers),
                      .why = "PBS has no lists of tasks"});
  }
}

// Without it, PBS may place all chunks on one node.
bool needs_place(const Job& job) {
  const auto lines = job.settings.list("directives");
  return total_nodes(job) > 1 && std::none_of(lines.begin(), lines.end(), [](const std::string& line) {
           return line.find("place=") != std::string::npos;
         });
}

std::string place_of(const Job& job) {
  const bool is_exclusive = job.settings.is_on("exclusive");
  if (needs_place(job)) return is_exclusive ? "-l place=scatter:excl" : "-l place=scatter";
  return is_exclusive ? "-l place=excl" : "";
}

Lines pbs(const Job& job) {
  refuse_slurm_settings(job);
  checked_value(job.run_dir, "run_dir");
  Lines lines = {"-N " + checked_value(job.name, "job_name"), select(job), "-l walltime=" + walltime(job.seconds),
                 job.settings.word("error") ? "-j n" : "-j oe", "-k doe"};  // written while the job runs
  if (const auto place = place_of(job); !place.empty()) lines.push_back(place);
  if (job.array) lines.push_back("-J " + array_text(*job.array));
  add_directive(lines, job, "dependency", "-W depend=");
  add_directive(lines, job, "error", "-e ");
  if (const auto output = job.settings.word("output")) {
    lines.push_back("-o " + checked_value(*output, "output"));
  } else if (!job.output.empty())
    lines.push_back("-o " + checked_value(job.output + "/", "run_dir"));
  add_directive(lines, job, "account", "-A ");
  add_directive(lines, job, "queue", "-q ");
  add_directive(lines, job, "filesystems", "-l filesystems=");
  if (const auto points = mail_points(job)) lines.push_back("-m " + *points);
  add_directive(lines, job, "mail", "-M ");
  return lines;
}

Lines lines_of(const Job& job) {
  switch (job.scheduler) {
    case Scheduler::slurm:
      return slurm(job);
    case Scheduler::pbs:
      return pbs(job);
    case Scheduler::flux:
      return flux_directives(job);
    case Scheduler::lsf:
      return lsf_directives(job);
    case Scheduler::grid_engine:
      return grid_engine_directives(job);
  }
  throw Error({.what = "Unknown scheduler"});
}

}  // namespace

std::vector<std::string> directives(const Job& job) {
  check_conflicts(job);
  auto lines = lines_of(job);
  add_verbatim(lines, job);
  return lines;
}

}  // namespace hortator::launching
