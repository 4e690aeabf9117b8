#include "launch/job/conflicts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr std::array<std::string_view, 13> slurm_mail_types = {
    "NONE",      "BEGIN",      "END",           "FAIL",          "ALL",           "REQUEUE",    "INVALID_DEPEND",
    "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS"};

// A profile's value gives way to one of the command line without an error.
bool is_typed(const Job& job, std::string_view key) {
  const auto* found = job.settings.find(key);
  return found != nullptr && found->origin.starts_with('-');
}

void check_memory(const Job& job) {
  if (!job.settings.word("mem") || !job.settings.word("mem_per_cpu")) return;
  throw UsageError({.what = "--mem and --mem-per-cpu contradict each other",
                    .why = "one is the memory of a node, the other that of each CPU",
                    .hint = "leave out one of them"});
}

void check_cpus(const Job& job) {
  if (!is_typed(job, "cpus_per_node")) return;
  const int cpus = *job.settings.number("cpus_per_node");
  const int ranks = *job.request.ranks_per_node;
  if (cpus < ranks) {
    throw UsageError({.what = text::concat("--cpus-per-node: ", cpus, " is too few for ", ranks, " ranks on each node"),
                      .hint = "each rank needs one CPU"});
  }
  const auto threads = is_typed(job, "threads") ? job.request.threads : std::nullopt;
  if (!threads || static_cast<long long>(ranks) * *threads == cpus) return;
  throw UsageError({.what = text::concat("--cpus-per-node ", cpus, " contradicts --threads ", *threads, " of ",
                                         text::count(ranks, "rank"), " on each node"),
                    .why = "Slurm counts the CPUs of each rank",
                    .hint = "leave out one of them"});
}

void check_mail_types(const Job& job) {
  const auto given = job.settings.word("mail_type").value_or("END");
  for (auto type : text::split(given, ',')) {
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::toupper(c); });
    if (std::ranges::find(slurm_mail_types, type) != slurm_mail_types.end()) continue;
    throw UsageError({.what = text::concat("--mail-type: expected one of ", text::join(slurm_mail_types), ", got ",
                                           text::quote(type))});
  }
}

// The script of a job starts the ranks itself, and has no keepers.
void check_memory_checkpoint(const Job& job) {
  if (!is_typed(job, "memory_checkpoint")) return;
  throw UsageError({.what = "--memory-checkpoint does not work with `hortator job`",
                    .why = "only `hortator launch` keeps memory for checkpoints",
                    .hint = "call `hortator launch --memory-checkpoint 10 --max-restarts N` in a script of your own"});
}

// The line of the launcher is one for all tasks.
void check_log_dir(const Job& job) {
  if (!job.array || job.request.log_dir.empty()) return;
  throw UsageError({.what = "--log-dir does not work with an array or a sweep",
                    .why = "its tasks would write to the same files",
                    .hint = "use --prefix-output: each task has an output of its own"});
}

}  // namespace

void check_conflicts(const Job& job) {
  check_log_dir(job);
  check_memory_checkpoint(job);
  check_memory(job);
  if (job.scheduler != Scheduler::slurm) return;
  check_cpus(job);
  check_mail_types(job);
}

}  // namespace hortator::launching
