#include "launch/job/other_directives.hpp"

#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"
#include "launch/settings/walltime.hpp"

namespace hortator::launching {
namespace {

int gpus_of_node(const Job& job) { return job.request.gpus_per_node.value_or(0); }

/// The file for the job's output, or its default in the existing folder for it; empty: where the scheduler writes.
std::string output_of(const Job& job, const std::string& name) {
  checked_value(job.run_dir, "run_dir");
  if (const auto chosen = job.settings.word("output")) return checked_value(*chosen, "output");
  return job.output.empty() ? "" : checked_value(job.output, "run_dir") + "/" + name;
}

void refuse_types(const Job& job) {
  if (job.request.gpu_types.empty()) return;
  throw UsageError({.what = text::concat("--gpus-per-node: ", facts_of(job.scheduler).title,
                                         " has no common name for the type in ", text::quote(job.request.gpu_types)),
                    .hint = "use --gpus-per-node N, and --directive with your site's name"});
}

// "afterok:41" of Slurm and PBS as a condition of LSF.
std::string lsf_condition(const std::string& dependency) {
  static const std::map<std::string, std::string> conditions = {
      {"after", "started"}, {"afterany", "ended"}, {"afterok", "done"}, {"afternotok", "exit"}};
  const auto colon = dependency.find(':');
  const auto found = conditions.find(dependency.substr(0, colon));
  if (colon == std::string::npos || found == conditions.end()) {
    throw UsageError({.what = "--dependency: expected after, afterany, afterok or afternotok and a job, got " +
                              text::quote(dependency),
                      .hint = "such as afterok:123; other conditions of LSF: --directive '-w ...'"});
  }
  return text::concat(found->second, '(', checked_value(dependency.substr(colon + 1), "dependency"), ')');
}

}  // namespace

DirectiveLines flux_directives(const Job& job) {
  refuse_settings(job, {"qos", "reservation", "licenses", "mail", "mail_type", "filesystems", "chunk_resources", "mem",
                        "mem_per_cpu"});
  refuse_types(job);
  if (job.array) {
    throw UsageError({.what = "--array and sweeps do not work with Flux, which has no job arrays",
                      .hint = "submit a job for each task: its arguments and --run-dir RUN_DIR/TASK"});
  }
  DirectiveLines lines = {"--job-name=" + checked_value(job.name, "job_name"),
                          text::concat("--nodes=", *job.request.nodes), text::concat("--nslots=", *job.request.nodes),
                          text::concat("--time-limit=", job.seconds, 's')};
  // A slot is a node's share of the job.
  if (job.cpus_per_node || job.request.threads) lines.push_back(text::concat("--cores-per-slot=", cpus_of_node(job)));
  if (gpus_of_node(job) > 0) lines.push_back(text::concat("--gpus-per-slot=", gpus_of_node(job)));
  if (job.settings.is_on("exclusive") || !(job.cpus_per_node || job.request.threads)) lines.emplace_back("--exclusive");
  if (const auto output = output_of(job, "{{id}}.out"); !output.empty()) lines.push_back("--output=" + output);
  add_directive(lines, job, "error", "--error=");
  add_directive(lines, job, "dependency", "--dependency=");
  add_directive(lines, job, "account", "--bank=");
  add_directive(lines, job, "queue", "--queue=");
  add_directive(lines, job, "constraint", "--requires=", with_operators);
  return lines;
}

DirectiveLines lsf_directives(const Job& job) {
  refuse_settings(job, {"qos", "constraint", "licenses", "filesystems", "chunk_resources"});
  refuse_types(job);
  const auto& request = job.request;
  const int slots = cpus_of_node(job);
  auto name = checked_value(job.name, "job_name");
  if (job.array) {
    name += text::concat('[', range_from_one(*job.array, facts_of(job.scheduler)), ']');
    if (job.array->at_once) name += text::concat('%', *job.array->at_once);
  }
  // LSF counts minutes.
  const auto minutes = (job.seconds + 59) / 60;
  DirectiveLines lines = {"-J " + name, text::concat("-n ", *request.nodes * slots),
                          text::concat("-R span[ptile=", slots, ']'),
                          text::print("-W %lld:%02lld", minutes / 60, minutes % 60), "-L /bin/bash"};
  const auto output = output_of(job, job.array ? "%J_%I.out" : "%J.out");
  lines.push_back("-o " + (output.empty() ? job.name + "-%J.out" : output));
  add_directive(lines, job, "error", "-e ");
  if (gpus_of_node(job) > 0) lines.push_back(text::concat("-gpu num=", gpus_of_node(job)));
  if (const auto memory = memory_of_node(job)) lines.push_back(text::concat("-R rusage[mem=", *memory, "MB/host]"));
  if (job.settings.is_on("exclusive")) lines.emplace_back("-x");
  if (const auto dependency = job.settings.word("dependency")) lines.push_back("-w " + lsf_condition(*dependency));
  add_directive(lines, job, "account", "-P ");
  add_directive(lines, job, "queue", "-q ");
  add_directive(lines, job, "reservation", "-U ");
  if (const auto points = mail_points(job)) {
    if (points->find('b') != std::string::npos) lines.emplace_back("-B");
    if (points->find_first_of("ae") != std::string::npos) lines.emplace_back("-N");
  }
  add_directive(lines, job, "mail", "-u ");
  return lines;
}

DirectiveLines grid_engine_directives(const Job& job) {
  refuse_settings(job, {"qos", "constraint", "licenses", "filesystems"});
  refuse_types(job);
  const int slots = cpus_of_node(job);
  const int all_slots = *job.request.nodes * slots;
  DirectiveLines lines = {"-N " + checked_value(job.name, "job_name"), "-S /bin/bash", "-cwd", "-r n",
                          "-l h_rt=" + walltime(job.seconds)};
  const auto environment = job.settings.word("parallel_environment");
  if (!environment && all_slots > 1) {
    throw UsageError({.what = text::concat("--parallel-environment is missing: the job needs ", all_slots, " slots"),
                      .why = "Grid Engine gives several slots only by a parallel environment, which sites name",
                      .hint = "`qconf -spl` lists them; choose one that gives each node a fixed number of slots"});
  }
  if (environment)
    lines.push_back(text::concat("-pe ", checked_value(*environment, "parallel_environment"), ' ', all_slots));
  if (gpus_of_node(job) > 0 && job.settings.list("chunk_resources").empty()) {
    throw UsageError({.what = "--gpus-per-node: Grid Engine has no common name for GPUs",
                      .hint = "add --chunk-resources with your site's name and its count, such as gpu=4"});
  }
  for (const auto& resource : job.settings.list("chunk_resources"))
    lines.push_back("-l " + checked_value(resource, "chunk_resources"));
  // Grid Engine counts memory by slot.
  if (const auto memory = memory_of_node(job)) lines.push_back(text::concat("-l h_vmem=", *memory / slots, 'M'));
  if (job.settings.is_on("exclusive")) lines.emplace_back("-l exclusive=true");
  if (job.array) {
    lines.push_back("-t " + range_from_one(*job.array, facts_of(job.scheduler)));
    if (job.array->at_once) lines.push_back(text::concat("-tc ", *job.array->at_once));
  }
  if (const auto other = job_to_wait_for(job)) lines.push_back("-hold_jid " + *other);
  const auto error = job.settings.word("error");
  lines.emplace_back(error ? "-j n" : "-j y");
  const auto output = output_of(job, job.array ? "$JOB_ID.$TASK_ID.out" : "$JOB_ID.out");
  if (!output.empty()) lines.push_back("-o " + output);
  add_directive(lines, job, "error", "-e ");
  add_directive(lines, job, "account", "-P ");
  add_directive(lines, job, "queue", "-q ");
  add_directive(lines, job, "reservation", "-ar ");
  if (const auto points = mail_points(job)) lines.push_back("-m " + *points);
  add_directive(lines, job, "mail", "-M ");
  return lines;
}

}  // namespace hortator::launching
