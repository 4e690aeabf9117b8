#include "launch/settings/keys.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/walltime.hpp"

namespace hortator::launching {
namespace {

constexpr auto table = std::to_array<Key>({
    {.name = "num_processes",
     .flag = "ranks",
     .variable = "HORTATOR_RANKS",
     .kind = KeyKind::count,
     .what = "ranks in total, over all nodes"},
    {.name = "num_machines", .flag = "nodes", .variable = "HORTATOR_NODES", .kind = KeyKind::count, .what = "nodes"},
    {.name = "ranks_per_node",
     .flag = "ranks-per-node",
     .variable = "HORTATOR_RANKS_PER_NODE",
     .kind = KeyKind::count,
     .what = "ranks on each node"},
    {.name = "gpus_per_node",
     .flag = "gpus-per-node",
     .variable = "HORTATOR_GPUS_PER_NODE",
     .kind = KeyKind::number,
     .what = "GPUs of each node; every rank sees all of its node's"},
    {.name = "gpu_ids",
     .flag = "gpu-ids",
     .variable = "HORTATOR_GPU_IDS",
     .kind = KeyKind::word,
     .scope = Scope::launch,
     .what = "GPUs of each node to use: all, or comma-separated numbers",
     .builtin = "all"},
    {.name = "use_cpu",
     .flag = "cpu",
     .variable = "HORTATOR_CPU",
     .kind = KeyKind::onoff,
     .what = "use the CPU even where there are GPUs",
     .builtin = "false",
     .is_for_program = true},
    {.name = "mixed_precision",
     .flag = "mixed-precision",
     .variable = "HORTATOR_MIXED_PRECISION",
     .kind = KeyKind::choice,
     .what = "data type of the forward pass",
     .builtin = "no",
     .choices = "no fp16 bf16",
     .is_for_program = true},
    {.name = "zero_stage",
     .flag = "zero-stage",
     .variable = "HORTATOR_ZERO_STAGE",
     .kind = KeyKind::choice,
     .what = "what to shard over the ranks (ZeRO)",
     .builtin = "0",
     .choices = "0 1 2 3 NO_SHARD SHARD_GRAD_OP FULL_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2",
     .is_for_program = true},
    {.name = "gradient_accumulation_steps",
     .flag = "gradient-accumulation-steps",
     .variable = "HORTATOR_GRADIENT_ACCUMULATION_STEPS",
     .kind = KeyKind::count,
     .what = "micro-steps between two updates",
     .builtin = "1",
     .is_for_program = true},
    {.name = "debug",
     .flag = "debug",
     .variable = "HORTATOR_DEBUG",
     .kind = KeyKind::onoff,
     .what = "check before each collective that all ranks agree on it",
     .builtin = "false",
     .is_for_program = true},
    {.name = "num_cpu_threads_per_process",
     .flag = "threads",
     .variable = "HORTATOR_THREADS",
     .kind = KeyKind::count,
     .what = "threads per rank (default: one per core)"},
    {.name = "mpi",
     .flag = "mpi",
     .variable = "HORTATOR_SRUN_MPI",
     .kind = KeyKind::word,
     .what = "srun's --mpi (default: the best one that srun offers)"},
    {.name = "launcher",
     .flag = "launcher",
     .variable = "HORTATOR_LAUNCHER",
     .kind = KeyKind::word,
     .what = "the mpirun that starts ranks where srun does not (default: the one of Hortator's MPI)"},
    {.name = "hostfile",
     .flag = "hostfile",
     .variable = "HORTATOR_HOSTFILE",
     .kind = KeyKind::word,
     .scope = Scope::launch,
     .what = "list of hosts for mpirun"},
    {.name = "max_restarts",
     .flag = "max-restarts",
     .variable = "HORTATOR_MAX_RESTARTS",
     .kind = KeyKind::number,
     .what = "how often a failed run is restarted",
     .builtin = "0"},
    {.name = "prefix_output",
     .flag = "prefix-output",
     .variable = "HORTATOR_PREFIX_OUTPUT",
     .kind = KeyKind::onoff,
     .what = "prefix each line of output with its rank",
     .builtin = "false"},
    {.name = "log_dir",
     .flag = "log-dir",
     .variable = "HORTATOR_LOG_DIR",
     .kind = KeyKind::word,
     .what = "write each rank's output to a file in this folder"},
    {.name = "bcast",
     .flag = "bcast",
     .variable = "HORTATOR_BCAST",
     .kind = KeyKind::onoff,
     .what = "Slurm copies the program to each node before it starts",
     .builtin = "false"},
    {.name = "site",
     .flag = "site",
     .variable = "HORTATOR_SITE",
     .kind = KeyKind::word,
     .what = "profile of the machine: a name in share/sites, or a file"},
    {.name = "scheduler",
     .flag = "scheduler",
     .variable = "HORTATOR_SCHEDULER",
     .kind = KeyKind::choice,
     .scope = Scope::job,
     .what = "the scheduler that runs the job",
     .choices = "slurm pbs"},
    {.name = "job_name",
     .flag = "name",
     .variable = "HORTATOR_JOB_NAME",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "the job's name (default: the program's)"},
    {.name = "time",
     .flag = "time",
     .variable = "HORTATOR_TIME",
     .kind = KeyKind::time,
     .scope = Scope::job,
     .what = "time limit of one job, HH:MM:SS",
     .builtin = "01:00:00"},
    {.name = "account",
     .flag = "account",
     .variable = "HORTATOR_ACCOUNT",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "account to charge"},
    {.name = "queue",
     .flag = "queue",
     .variable = "HORTATOR_QUEUE",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "partition (Slurm) or queue (PBS)"},
    {.name = "qos",
     .flag = "qos",
     .variable = "HORTATOR_QOS",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "quality of service (Slurm)"},
    {.name = "constraint",
     .flag = "constraint",
     .variable = "HORTATOR_CONSTRAINT",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "features of the nodes (Slurm)"},
    {.name = "reservation",
     .flag = "reservation",
     .variable = "HORTATOR_RESERVATION",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "reservation"},
    {.name = "licenses",
     .flag = "licenses",
     .variable = "HORTATOR_LICENSES",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "licences, also of file systems (Slurm)"},
    {.name = "mail",
     .flag = "mail",
     .variable = "HORTATOR_MAIL",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "address to notify when the job ends or fails"},
    {.name = "filesystems",
     .flag = "filesystems",
     .variable = "HORTATOR_FILESYSTEMS",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "file systems that the job needs (PBS)"},
    {.name = "cpus_per_node",
     .flag = "cpus-per-node",
     .variable = "HORTATOR_CPUS_PER_NODE",
     .kind = KeyKind::count,
     .scope = Scope::job,
     .what = "CPUs to request on each node"},
    {.name = "spare_nodes",
     .flag = "spare-nodes",
     .variable = "HORTATOR_SPARE_NODES",
     .kind = KeyKind::number,
     .scope = Scope::job,
     .what = "extra nodes, to replace bad ones (Slurm)",
     .builtin = "0"},
    {.name = "warning_seconds",
     .flag = "warning-seconds",
     .variable = "HORTATOR_WARNING_SECONDS",
     .kind = KeyKind::count,
     .scope = Scope::job,
     .what = "seconds before the time limit at which the job is warned",
     .builtin = "120"},
    {.name = "requeues",
     .flag = "requeues",
     .variable = "HORTATOR_REQUEUES",
     .kind = KeyKind::number,
     .scope = Scope::job,
     .what = "how often a stopped job is requeued (Slurm)",
     .builtin = "100"},
    {.name = "run_dir",
     .flag = "run-dir",
     .variable = "HORTATOR_RUN_DIR",
     .kind = KeyKind::word,
     .scope = Scope::job,
     .what = "folder for the run's files (default: runs/PROGRAM)"},
    {.name = "directives",
     .flag = "directive",
     .variable = "HORTATOR_DIRECTIVES",
     .kind = KeyKind::list,
     .scope = Scope::job,
     .what = "extra line for the scheduler, passed on unchanged (repeatable)"},
    {.name = "modules",
     .flag = "module",
     .variable = "HORTATOR_MODULES",
     .kind = KeyKind::list,
     .scope = Scope::job,
     .what = "module to load (repeatable)"},
    {.name = "environment",
     .flag = "env",
     .variable = "HORTATOR_ENVIRONMENT",
     .kind = KeyKind::variables,
     .scope = Scope::job,
     .what = "NAME=value for the job, such as fabric settings (repeatable)"},
});

bool is_number(const std::string& text, long long min) {
  long long value = 0;
  return text::parse_integer(text, value) && value >= min && value <= 100'000'000;
}

bool is_assignment(const std::string& text) {
  const auto end = text.find('=');
  if (end == std::string::npos || end == 0 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_accepted(const Key& key, const std::string& value) {
  const auto choices = text::split(std::string(key.choices), ' ');
  switch (key.kind) {
    case KeyKind::count:
      return is_number(value, 1);
    case KeyKind::number:
      return is_number(value, 0);
    case KeyKind::onoff:
      return text::parse_bool(value).has_value();
    case KeyKind::choice:
      return std::find(choices.begin(), choices.end(), value) != choices.end();
    case KeyKind::time:
      return parse_walltime(value).has_value();
    case KeyKind::variables:
      return is_assignment(value);
    case KeyKind::word:
    case KeyKind::list:
      return !value.empty();
  }
  return false;
}

std::string expected(const Key& key) {
  switch (key.kind) {
    case KeyKind::count:
      return "a whole number from 1";
    case KeyKind::number:
      return "a whole number from 0";
    case KeyKind::onoff:
      return "true or false";
    case KeyKind::choice:
      return "one of " + text::join(text::split(std::string(key.choices), ' '));
    case KeyKind::time:
      return "HH:MM:SS or D-HH:MM:SS";
    case KeyKind::variables:
      return "NAME=value";
    case KeyKind::word:
    case KeyKind::list:
      break;
  }
  return "a value";
}

}  // namespace

std::span<const Key> keys() { return table; }

const Key& find_key(std::string_view name, const std::string& where) {
  const auto key = std::find_if(table.begin(), table.end(), [&](const Key& known) { return known.name == name; });
  if (key != table.end()) return *key;
  std::vector<std::string> names;
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
    if (!is_accepted(key, value))
      throw UsageError({.what = text::concat(begin, expected(key), ", got ", text::quote(value))});
  }
}

}  // namespace hortator::launching
