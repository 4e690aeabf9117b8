#include "launch/settings/keys.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/settings/resources.hpp"
#include "launch/settings/synonyms.hpp"
#include "launch/settings/walltime.hpp"

namespace hortator::launching {
namespace {

#define LAUNCH_SETTING(key, ...) {.name = #key, __VA_ARGS__, .is_for_program = true},
// clang-format off
constexpr auto table = std::to_array<Key>({
    {.name = "ranks", .kind = KeyKind::count, .what = "ranks in total, over all nodes"},
    {.name = "nodes", .kind = KeyKind::count, .what = "nodes"},
    {.name = "ranks_per_node", .kind = KeyKind::count, .what = "ranks on each node (default: one for each GPU)"},
    {.name = "gpus_per_node", .kind = KeyKind::gpus, .what = "GPUs of each node, such as 4 or a100:4; every rank sees all of its node's"},
    {.name = "gpus_per_rank", .kind = KeyKind::gpus, .what = "GPUs for each rank, such as 1 or a100:1"},
    {.name = "gpus", .kind = KeyKind::gpus, .what = "GPUs in total, over all nodes"},
    {.name = "gpu_ids", .scope = Scope::launch, .what = "GPUs of each node to use: all, or comma-separated numbers", .builtin = "all"},
#include "core/environment/program_options.inc"
    {.name = "threads", .kind = KeyKind::count, .what = "threads per rank (default: one per core)"},
    {.name = "srun_mpi", .what = "srun's --mpi (default: the best one that srun offers)"},
    {.name = "launcher", .what = "the mpirun that starts ranks where srun does not (default: the one of Hortator's MPI)"},
    {.name = "launcher_options", .kind = KeyKind::list, .what = "option for srun or mpirun, passed on unchanged (repeatable)"},
    {.name = "cpu_bind", .what = "what a rank is bound to: none, core, socket, numa, hwthread; with srun, also its own values"},
    {.name = "map_by", .what = "mpirun's --map-by"},
    {.name = "hostfile", .scope = Scope::launch, .what = "list of hosts for mpirun"},
    {.name = "host", .scope = Scope::launch, .what = "hosts or nodes to start on, separated by commas"},
    {.name = "profiler", .kind = KeyKind::choice, .scope = Scope::launch, .what = "run each rank under this profiler (also --profile), which writes RUN_DIR/profile", .choices = "nsys perf"},
    {.name = "max_restarts", .kind = KeyKind::number, .what = "how often a failed run is restarted", .builtin = "0"},
    {.name = "restarts_per_hour", .kind = KeyKind::number, .scope = Scope::launch, .what = "limit of restarts within an hour; 0: only max_restarts limits them", .builtin = "0"},
    {.name = "memory_folder", .scope = Scope::launch, .what = "folder of a file system in memory on each node, for memory_checkpoint", .builtin = "/dev/shm"},
    {.name = "on_checkpoint", .scope = Scope::launch, .what = "command to run for each complete checkpoint, without a shell; {} is its folder"},
    {.name = "prefix_output", .kind = KeyKind::onoff, .what = "prefix each line of output with its rank", .builtin = "false"},
    {.name = "log_dir", .what = "write each rank's output to a file in this folder"},
    {.name = "bcast", .kind = KeyKind::onoff, .what = "Slurm copies the program to each node before it starts", .builtin = "false"},
    {.name = "site", .what = "profile of the machine: a name in share/sites, or a file"},
    {.name = "scheduler", .kind = KeyKind::choice, .scope = Scope::job, .what = "the scheduler that runs the job", .choices = "slurm pbs flux lsf sge"},
    {.name = "job_name", .scope = Scope::job, .what = "name of the job (default: the program's)"},
    {.name = "time", .kind = KeyKind::time, .scope = Scope::job, .what = "time limit of the job", .builtin = "01:00:00"},
    {.name = "account", .scope = Scope::job, .what = "project to charge"},
    {.name = "queue", .scope = Scope::job, .what = "partition (Slurm) or queue"},
    {.name = "qos", .scope = Scope::job, .what = "quality of service (Slurm)"},
    {.name = "constraint", .scope = Scope::job, .what = "features that the nodes must have (Slurm, Flux)"},
    {.name = "reservation", .scope = Scope::job, .what = "reservation to use (Slurm, LSF, Grid Engine)"},
    {.name = "licenses", .scope = Scope::job, .what = "licenses that the job needs (Slurm)"},
    {.name = "mail", .scope = Scope::job, .what = "address to notify when the job ends or fails"},
    {.name = "mail_type", .scope = Scope::job, .what = "when to notify: BEGIN, END, FAIL, separated by commas (default: END,FAIL)"},
    {.name = "parallel_environment", .scope = Scope::job, .what = "parallel environment that gives the slots (Grid Engine)"},
    {.name = "filesystems", .scope = Scope::job, .what = "file systems that the job needs (PBS)"},
    {.name = "chunk_resources", .kind = KeyKind::list, .scope = Scope::job, .what = "further resources of each node, such as gpu_type=a100 (PBS; Grid Engine: of the job or slot; repeatable)"},
    {.name = "cpus_per_node", .kind = KeyKind::count, .scope = Scope::job, .what = "CPUs to request on each node (default: the scheduler's own number)"},
    {.name = "mem", .kind = KeyKind::memory, .scope = Scope::job, .what = "memory on each node, such as 64G"},
    {.name = "mem_per_cpu", .kind = KeyKind::memory, .scope = Scope::job, .what = "memory for each CPU, such as 4G"},
    {.name = "exclusive", .kind = KeyKind::onoff, .scope = Scope::job, .what = "share the nodes with no other job", .builtin = "false"},
    {.name = "array", .kind = KeyKind::array, .scope = Scope::job, .what = "a job array, such as 0-3 or 0-9%2: each task has a run folder of its own"},
    {.name = "dependency", .scope = Scope::job, .what = "the job starts after others, such as afterok:123"},
    {.name = "output", .scope = Scope::job, .what = "file for the job's output (default: the scheduler's; with --submit, in RUN_DIR/jobs)"},
    {.name = "error", .scope = Scope::job, .what = "file for the job's standard error (default: that of its output)"},
    {.name = "spare_nodes", .kind = KeyKind::number, .scope = Scope::job, .what = "extra nodes, to replace bad ones (Slurm, PBS)", .builtin = "0"},
    {.name = "warning_seconds", .kind = KeyKind::count, .scope = Scope::job,
     .what = "seconds before the time limit at which the job is warned", .builtin = "120"},
    {.name = "requeues", .kind = KeyKind::number, .scope = Scope::job, .what = "how often a stopped job is requeued (Slurm)", .builtin = "3"},
    {.name = "run_dir", .what = "folder for the run's files (default: runs/PROGRAM)"},
    {.name = "directives", .kind = KeyKind::list, .scope = Scope::job,
     .what = "extra line for the scheduler, passed on unchanged (repeatable)"},
    {.name = "modules", .kind = KeyKind::list, .scope = Scope::job, .what = "module to load (repeatable)"},
    {.name = "environment", .kind = KeyKind::variables, .what = "NAME=value for the ranks, such as fabric settings (repeatable)"},
});
// clang-format on

bool is_assignment(const std::string& text) {
  const auto end = text.find('=');
  if (end == std::string::npos || end == 0 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_accepted(const Key& key, const std::string& value) {
  if (automatic_value(key, value)) return true;
  switch (key.kind) {
    case KeyKind::count:
      return core::parse_whole_number(value, 1).has_value();
    case KeyKind::number:
      return core::parse_whole_number(value, 0).has_value();
    case KeyKind::amount:
      return core::parse_amount(value).has_value();
    case KeyKind::onoff:
      return text::parse_bool(value).has_value();
    case KeyKind::choice:
      return core::parse_choice(key, value).has_value();
    case KeyKind::time:
      return parse_walltime(value).has_value();
    case KeyKind::interval:
      return core::parse_interval(value).has_value();
    case KeyKind::gpus:
      return parse_gpus(value).has_value();
    case KeyKind::memory:
      return parse_memory(value).has_value();
    case KeyKind::array:
      return parse_array(value).has_value();
    case KeyKind::variables:
      return is_assignment(value);
    case KeyKind::word:
    case KeyKind::list:
      return !value.empty();
  }
  return false;
}

}  // namespace

std::span<const Key> keys() { return table; }

std::optional<std::string> automatic_value(const Key& key, std::string_view word) {
  const auto begin = text::concat(word, '=');
  for (const auto& one : text::split(std::string(key.automatic), ' ')) {
    if (one.starts_with(begin)) return one.substr(begin.size());
  }
  return {};
}

const Key& find_key(std::string_view name, const std::string& where) {
  const auto synonym = key_of_synonym(name);
  const auto wanted = synonym.empty() ? name : synonym;
  const auto key = std::find_if(table.begin(), table.end(), [&](const Key& known) { return known.name == wanted; });
  if (key != table.end()) return *key;
  std::vector<std::string> names = synonyms_in_files();
  for (const auto& known : table) names.emplace_back(known.name);
  const auto near = text::nearest(name, names);
  throw UsageError({.what = where + "unknown key " + text::quote(name),
                    .hint = near.empty() ? "`hortator config --help` lists the keys" : "did you mean '" + near + "'?"});
}

void check_values(const Key& key, const std::vector<std::string>& values, const std::string& where) {
  const auto begin = where.empty() ? std::string("Expected ") : where + "expected ";
  const bool is_many = key.kind == KeyKind::list || key.kind == KeyKind::variables;
  if (!is_many && values.size() != 1) {
    throw UsageError({.what = text::concat(begin, "one value, got ", values.size()),
                      .why = text::concat(key.name, " is ", expected(key))});
  }
  for (const auto& value : values) {
    if (!is_accepted(key, value)) core::throw_unexpected(key, value, where);
  }
}

}  // namespace hortator::launching
