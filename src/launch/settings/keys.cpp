#include "launch/settings/keys.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/walltime.hpp"

namespace hortator::launching {
namespace {

constexpr std::array<Key, 38> table = {{
    {"num_processes", "ranks", "HORTATOR_RANKS", Kind::count, Scope::both, "ranks, over all nodes together"},
    {"num_machines", "nodes", "HORTATOR_NODES", Kind::count, Scope::both, "nodes"},
    {"ranks_per_node", "ranks-per-node", "HORTATOR_RANKS_PER_NODE", Kind::count, Scope::both, "ranks on each node"},
    {"gpus_per_node", "gpus-per-node", "HORTATOR_GPUS_PER_NODE", Kind::number, Scope::both,
     "GPUs of each node, all visible to each of its ranks"},
    {"gpu_ids", "gpu-ids", "HORTATOR_GPU_IDS", Kind::word, Scope::launch,
     "which GPUs of a node: all, or numbers with commas", "all"},
    {"use_cpu", "cpu", "HORTATOR_CPU", Kind::onoff, Scope::both, "stay on the CPU, also where there are GPUs", "false",
     "", true},
    {"mixed_precision", "mixed-precision", "HORTATOR_MIXED_PRECISION", Kind::choice, Scope::both,
     "type of the forward pass", "no", "no fp16 bf16", true},
    {"zero_stage", "zero-stage", "HORTATOR_ZERO_STAGE", Kind::choice, Scope::both, "what is sharded over the ranks",
     "0", "0 1 2 3 NO_SHARD SHARD_GRAD_OP FULL_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2", true},
    {"gradient_accumulation_steps", "gradient-accumulation-steps", "HORTATOR_GRADIENT_ACCUMULATION_STEPS", Kind::count,
     Scope::both, "micro-steps between two updates", "1", "", true},
    {"debug", "debug", "HORTATOR_DEBUG", Kind::onoff, Scope::both,
     "compare what all ranks are about to do before each collective", "false", "", true},
    {"num_cpu_threads_per_process", "threads", "HORTATOR_THREADS", Kind::count, Scope::both,
     "threads of a rank (default: as many as it has cores)"},
    {"mpi", "mpi", "HORTATOR_SRUN_MPI", Kind::word, Scope::both, "srun's --mpi (default: the best that srun offers)"},
    {"launcher", "launcher", "HORTATOR_LAUNCHER", Kind::word, Scope::both,
     "the mpirun that starts ranks where srun does not (default: that of Hortator's own MPI)"},
    {"hostfile", "hostfile", "HORTATOR_HOSTFILE", Kind::word, Scope::launch, "mpirun's list of hosts"},
    {"max_restarts", "max-restarts", "HORTATOR_MAX_RESTARTS", Kind::number, Scope::both,
     "how often a run that failed starts again", "0"},
    {"prefix_output", "prefix-output", "HORTATOR_PREFIX_OUTPUT", Kind::onoff, Scope::both,
     "each line of output begins with its rank", "false"},
    {"log_dir", "log-dir", "HORTATOR_LOG_DIR", Kind::word, Scope::both,
     "a file of output for each rank, in this folder"},
    {"bcast", "bcast", "HORTATOR_BCAST", Kind::onoff, Scope::both,
     "Slurm copies the program to each node before it starts", "false"},
    {"site", "site", "HORTATOR_SITE", Kind::word, Scope::both,
     "profile of the machine: a name of share/sites, or a file"},
    {"scheduler", "scheduler", "HORTATOR_SCHEDULER", Kind::choice, Scope::job, "whose job it is", "", "slurm pbs"},
    {"job_name", "name", "HORTATOR_JOB_NAME", Kind::word, Scope::job, "the job's name (default: the program's)"},
    {"time", "time", "HORTATOR_TIME", Kind::time, Scope::job, "time limit of one job, HH:MM:SS", "01:00:00"},
    {"account", "account", "HORTATOR_ACCOUNT", Kind::word, Scope::job, "who pays"},
    {"queue", "queue", "HORTATOR_QUEUE", Kind::word, Scope::job, "partition (Slurm) or queue (PBS)"},
    {"qos", "qos", "HORTATOR_QOS", Kind::word, Scope::job, "quality of service (Slurm)"},
    {"constraint", "constraint", "HORTATOR_CONSTRAINT", Kind::word, Scope::job, "features of the nodes (Slurm)"},
    {"reservation", "reservation", "HORTATOR_RESERVATION", Kind::word, Scope::job, "reservation"},
    {"licenses", "licenses", "HORTATOR_LICENSES", Kind::word, Scope::job, "licences, also of file systems (Slurm)"},
    {"mail", "mail", "HORTATOR_MAIL", Kind::word, Scope::job, "address that hears of the job's end and failure"},
    {"filesystems", "filesystems", "HORTATOR_FILESYSTEMS", Kind::word, Scope::job, "file systems that it needs (PBS)"},
    {"cpus_per_node", "cpus-per-node", "HORTATOR_CPUS_PER_NODE", Kind::count, Scope::job,
     "CPUs to ask for on each node"},
    {"spare_nodes", "spare-nodes", "HORTATOR_SPARE_NODES", Kind::number, Scope::job,
     "nodes more than needed, to leave out bad ones (Slurm)", "0"},
    {"warning_seconds", "warning-seconds", "HORTATOR_WARNING_SECONDS", Kind::count, Scope::job,
     "how long before its limit the job is warned", "120"},
    {"requeues", "requeues", "HORTATOR_REQUEUES", Kind::number, Scope::job, "how often a stopped job goes on (Slurm)",
     "100"},
    {"run_dir", "run-dir", "HORTATOR_RUN_DIR", Kind::word, Scope::job,
     "where the run's files go (default: runs/PROGRAM)"},
    {"directives", "directive", "HORTATOR_DIRECTIVES", Kind::list, Scope::job,
     "one more line for the scheduler, as it is (repeatable)"},
    {"modules", "module", "HORTATOR_MODULES", Kind::list, Scope::job, "module to load (repeatable)"},
    {"environment", "env", "HORTATOR_ENVIRONMENT", Kind::variables, Scope::job,
     "NAME=value for the job, as fabric settings (repeatable)"},
}};

bool is_number(const std::string& word, long long least) {
  long long value = 0;
  return text::parse_integer(word, value) && value >= least && value <= 100'000'000;
}

bool is_assignment(const std::string& word) {
  const auto end = word.find('=');
  if (end == std::string::npos || end == 0 || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool fits(const Key& key, const std::string& word) {
  const auto choices = text::split(std::string(key.choices), ' ');
  switch (key.kind) {
    case Kind::count:
      return is_number(word, 1);
    case Kind::number:
      return is_number(word, 0);
    case Kind::onoff:
      return text::parse_bool(word).has_value();
    case Kind::choice:
      return std::find(choices.begin(), choices.end(), word) != choices.end();
    case Kind::time:
      return parse_walltime(word).has_value();
    case Kind::variables:
      return is_assignment(word);
    case Kind::word:
    case Kind::list:
      return !word.empty();
  }
  return false;
}

std::string expected(const Key& key) {
  switch (key.kind) {
    case Kind::count:
      return "a number from 1 on is needed";
    case Kind::number:
      return "a number from 0 on is needed";
    case Kind::onoff:
      return "say true or false";
    case Kind::choice:
      return "known are " + text::join(text::split(std::string(key.choices), ' '));
    case Kind::time:
      return "say HH:MM:SS, or D-HH:MM:SS";
    case Kind::variables:
      return "say NAME=value";
    case Kind::word:
    case Kind::list:
      break;
  }
  return "it may not be empty";
}

}  // namespace

std::span<const Key> keys() { return table; }

const Key& find_key(std::string_view name, const std::string& where) {
  const auto key = std::find_if(table.begin(), table.end(), [&](const Key& known) { return known.name == name; });
  if (key != table.end()) return *key;
  std::vector<std::string> names;
  for (const auto& known : table) names.emplace_back(known.name);
  const auto near = text::nearest(name, names);
  throw UsageError({.what = where + "there is no key " + text::quote(name),
                    .hint = near.empty() ? "`hortator config --help` lists the keys" : "did you mean '" + near + "'?"});
}

void check_text(const Key& key, const std::vector<std::string>& words, const std::string& where) {
  const bool is_many = key.kind == Kind::list || key.kind == Kind::variables;
  if (!is_many && words.size() != 1) {
    throw UsageError({.what = where + std::string(key.name) + " is one value", .hint = expected(key)});
  }
  for (const auto& word : words) {
    if (!fits(key, word))
      throw UsageError({.what = where + text::quote(word) + " is no " + std::string(key.name), .hint = expected(key)});
  }
}

}  // namespace hortator::launching
