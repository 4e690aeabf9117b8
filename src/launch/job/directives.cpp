#include "launch/job/directives.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/walltime.hpp"

namespace hortator::launching {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@%/-";
// Slurm's constraints may contain operators.
constexpr std::string_view with_operators =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@%/-&|*()[]";

const std::string& checked_value(const std::string& value, std::string_view what, std::string_view characters = plain) {
  const auto at = value.find_first_not_of(characters);
  if (at == std::string::npos && !value.empty()) return value;
  throw UsageError({.what = text::concat("Invalid ", what, ": ", text::quote(value)),
                    .why = "values in the scheduler's lines cannot be quoted",
                    .hint = text::concat("use letters, digits and ", characters.substr(62))});
}

void add(Lines& lines, const Job& job, std::string_view key, const std::string& option,
         std::string_view characters = plain) {
  if (const auto value = job.settings.word(key)) lines.push_back(option + checked_value(*value, key, characters));
}

// Unchanged, but each must be a single line that is an option. No option of qsub begins with two dashes.
void add_verbatim(Lines& lines, const Job& job) {
  const auto characters = std::string(with_operators) + " ";
  for (const auto& line : job.settings.list("directives")) {
    if (!line.starts_with('-'))
      throw UsageError({.what = "--directive: expected a line that begins with '-', got " + text::quote(line)});
    if (job.scheduler == Scheduler::pbs && line.starts_with("--")) {
      throw UsageError({.what = text::quote(line) + " is an option of Slurm, and this is a PBS job",
                        .hint = "use --directive with PBS's counterpart, such as '-l place=excl'"});
    }
    lines.push_back(checked_value(line, "a directive", characters));
  }
}

int total_nodes(const Job& job) { return *job.request.nodes + job.spare_nodes; }

// In the existing folder for output. A script that is only printed must not name a folder: nobody would have made it.
std::string output_file(const Job& job) {
  checked_value(job.run_dir, "run_dir");
  return checked_value(job.output.empty() ? "%x-%j.out" : job.output + "/%j.out", "run_dir");
}

Lines slurm(const Job& job) {
  Lines lines = {"--job-name=" + checked_value(job.name, "job_name"),
                 text::concat("--nodes=", total_nodes(job)),
                 text::concat("--ntasks-per-node=", *job.request.ranks_per_node),
                 "--time=" + walltime(job.seconds),
                 text::concat("--signal=B:USR1@", job.warning_seconds),
                 "--requeue",
                 "--open-mode=append",
                 "--output=" + output_file(job)};
  if (const auto cpus = cpus_per_rank(job)) lines.push_back(text::concat("--cpus-per-task=", *cpus));
  if (job.request.gpus_per_node.value_or(0) > 0) {
    lines.push_back(text::concat("--gpus-per-node=", *job.request.gpus_per_node));
  }
  if (job.restarts > 0) lines.emplace_back("--no-kill");
  add(lines, job, "account", "--account=");
  add(lines, job, "queue", "--partition=");
  add(lines, job, "qos", "--qos=");
  add(lines, job, "constraint", "--constraint=", with_operators);
  add(lines, job, "reservation", "--reservation=");
  add(lines, job, "licenses", "--licenses=");
  if (job.settings.word("mail")) lines.emplace_back("--mail-type=END,FAIL");
  add(lines, job, "mail", "--mail-user=");
  return lines;
}

std::string select(const Job& job) {
  const auto& request = job.request;
  const int ranks = *request.ranks_per_node;
  auto line =
      text::concat("-l select=", *request.nodes,
                   ":ncpus=", job.cpus_per_node.value_or(ranks * request.threads.value_or(1)), ":mpiprocs=", ranks);
  // PBS would set OMP_NUM_THREADS to ncpus for every rank.
  line += text::concat(":ompthreads=", cpus_per_rank(job).value_or(1));
  if (request.gpus_per_node.value_or(0) > 0) line += text::concat(":ngpus=", *request.gpus_per_node);
  return line;
}

// Settings without an equivalent in PBS are errors, rather than being ignored.
void refuse_slurm_settings(const Job& job) {
  for (const auto* key : {"qos", "constraint", "licenses"}) {
    if (!job.settings.find(key)) continue;
    throw UsageError({.what = text::concat(key, " works only with Slurm, and this is a PBS job (",
                                           job.settings.find(key)->origin, ")"),
                      .hint = "use --directive with your site's equivalent"});
  }
  if (job.settings.find("reservation")) {
    throw UsageError(
        {.what = "--reservation: PBS treats a reservation as a queue", .hint = "use --queue R123 instead"});
  }
  if (job.spare_nodes > 0) throw UsageError({.what = "--spare-nodes works only with Slurm, and this is a PBS job"});
}

// Without it, PBS may place all chunks on one node.
bool needs_place(const Job& job) {
  const auto lines = job.settings.list("directives");
  return *job.request.nodes > 1 && std::none_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("place=") != std::string::npos;
  });
}

Lines pbs(const Job& job) {
  refuse_slurm_settings(job);
  checked_value(job.run_dir, "run_dir");
  Lines lines = {"-N " + checked_value(job.name, "job_name"), select(job), "-l walltime=" + walltime(job.seconds),
                 "-j oe", "-k doe"};  // written while the job runs
  if (needs_place(job)) lines.emplace_back("-l place=scatter");
  if (!job.output.empty()) lines.push_back("-o " + checked_value(job.output + "/", "run_dir"));
  add(lines, job, "account", "-A ");
  add(lines, job, "queue", "-q ");
  add(lines, job, "filesystems", "-l filesystems=");
  if (job.settings.word("mail")) lines.emplace_back("-m ae");
  add(lines, job, "mail", "-M ");
  return lines;
}

}  // namespace

std::vector<std::string> directives(const Job& job) {
  auto lines = job.scheduler == Scheduler::slurm ? slurm(job) : pbs(job);
  add_verbatim(lines, job);
  return lines;
}

}  // namespace hortator::launching
