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

// clang-format off
constexpr auto table = std::to_array<Key>({
    {.name = "ranks", .kind = KeyKind::count, .what = "ranks in total, over all nodes"},
    {.name = "nodes", .kind = KeyKind::count, .what = "nodes"},
    {.name = "ranks_per_node", .kind = KeyKind::count, .what = "ranks on each node (default: one for each GPU)"},
    {.name = "gpus_per_node", .kind = KeyKind::gpus, .what = "GPUs of each node, such as 4 or a100:4; every rank sees all of its node's"},
    {.name = "gpus_per_rank", .kind = KeyKind::gpus, .what = "GPUs for each rank, such as 1 or a100:1"},
    {.name = "gpus", .kind = KeyKind::gpus, .what = "GPUs in total, over all nodes"},
    {.name = "gpu_ids", .scope = Scope::launch, .what = "GPUs of each node to use: all, or comma-separated numbers", .builtin = "all"},
    {.name = "cpu", .kind = KeyKind::onoff, .what = "use the CPU even where there are GPUs", .builtin = "false", .is_for_program = true},
    {.name = "mixed_precision", .kind = KeyKind::choice, .what = "data type of the forward pass", .builtin = "no",
     .choices = "no fp16 bf16", .is_for_program = true},
    {.name = "zero_stage", .kind = KeyKind::choice, .what = "what to shard over the ranks (ZeRO)", .builtin = "0",
     .choices = "0 1 2 3 NO_SHARD SHARD_GRAD_OP FULL_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2", .is_for_program = true,
     .automatic = "DEEPSPEED=2 FSDP=3"},
    {.name = "tensor", .kind = KeyKind::count, .what = "ranks that divide the features of the model among them", .builtin = "1",
     .is_for_program = true},
    {.name = "context", .kind = KeyKind::count, .what = "ranks that divide each sequence among them", .builtin = "1", .is_for_program = true},
    {.name = "context_attention", .kind = KeyKind::choice, .what = "how these ranks attend to the keys of whole sequences", .builtin = "gather",
     .choices = "gather ring", .is_for_program = true},
    {.name = "experts", .kind = KeyKind::count, .what = "ranks that divide the experts of the model among them", .builtin = "1",
     .is_for_program = true},
    {.name = "shard", .kind = KeyKind::count, .what = "ranks that share one set of ZeRO's shards (1: decided by zero_stage)", .builtin = "1",
     .is_for_program = true},
    {.name = "replicate", .kind = KeyKind::count, .what = "replicas of the model or of the set of shards (1: as many as fit)", .builtin = "1",
     .is_for_program = true},
    {.name = "pipeline", .kind = KeyKind::count, .what = "stages of a model on different ranks (not available yet: only 1)", .builtin = "1",
     .is_for_program = true},
    {.name = "offload_optimizer", .what = "where ZeRO keeps the optimizer's state between steps: cpu, or a folder", .is_for_program = true},
    {.name = "offload_parameters", .what = "where ZeRO stage 3 keeps parameters between their uses: cpu, or a folder", .is_for_program = true},
    {.name = "int8_gathers", .kind = KeyKind::onoff, .what = "ZeRO stage 3 gathers parameters between nodes as 8-bit integers", .builtin = "false",
     .is_for_program = true},
    {.name = "gradient_accumulation_steps", .kind = KeyKind::count, .what = "micro-steps between two updates", .builtin = "1",
     .is_for_program = true},
    {.name = "gradient_clipping", .kind = KeyKind::amount, .what = "largest norm of the gradients in an update (0: any; auto: 1 if nothing else sets it)",
     .is_for_program = true, .automatic = "auto=1"},
    {.name = "recompute_layers", .what = "layers of Sequential containers and of hortator::models whose activations are recomputed: all, or comma-separated classes",
     .is_for_program = true},
    {.name = "deepspeed_config", .what = "configuration file of DeepSpeed, for what its entries set", .is_for_program = true},
    {.name = "debug", .kind = KeyKind::onoff, .what = "check before each collective that all ranks agree on it", .builtin = "false",
     .is_for_program = true},
    {.name = "threads", .kind = KeyKind::count, .what = "threads per rank (default: one per core)"},
    {.name = "srun_mpi", .what = "srun's --mpi (default: the best one that srun offers)"},
    {.name = "launcher", .what = "the mpirun that starts ranks where srun does not (default: the one of Hortator's MPI)"},
    {.name = "launcher_options", .kind = KeyKind::list, .what = "option for srun or mpirun, passed on unchanged (repeatable)"},
    {.name = "cpu_bind", .what = "what a rank is bound to: none, core, socket, numa, hwthread; with srun, also its own values"},
    {.name = "map_by", .what = "mpirun's --map-by"},
    {.name = "hostfile", .scope = Scope::launch, .what = "list of hosts for mpirun"},
    {.name = "host", .scope = Scope::launch, .what = "hosts or nodes to start on, separated by commas"},
    {.name = "max_restarts", .kind = KeyKind::number, .what = "how often a failed run is restarted", .builtin = "0"},
    {.name = "prefix_output", .kind = KeyKind::onoff, .what = "prefix each line of output with its rank", .builtin = "false"},
    {.name = "log_dir", .what = "write each rank's output to a file in this folder"},
    {.name = "bcast", .kind = KeyKind::onoff, .what = "Slurm copies the program to each node before it starts", .builtin = "false"},
    {.name = "site", .what = "profile of the machine: a name in share/sites, or a file"},
    {.name = "scheduler", .kind = KeyKind::choice, .scope = Scope::job, .what = "the scheduler that runs the job", .choices = "slurm pbs"},
    {.name = "job_name", .scope = Scope::job, .what = "name of the job (default: the program's)"},
    {.name = "time", .kind = KeyKind::time, .scope = Scope::job, .what = "time limit of the job", .builtin = "01:00:00"},
    {.name = "account", .scope = Scope::job, .what = "project to charge"},
    {.name = "queue", .scope = Scope::job, .what = "partition (Slurm) or queue (PBS)"},
    {.name = "qos", .scope = Scope::job, .what = "quality of service (Slurm)"},
    {.name = "constraint", .scope = Scope::job, .what = "features that the nodes must have (Slurm)"},
    {.name = "reservation", .scope = Scope::job, .what = "reservation to use (Slurm)"},
    {.name = "licenses", .scope = Scope::job, .what = "licenses that the job needs (Slurm)"},
    {.name = "mail", .scope = Scope::job, .what = "address to notify when the job ends or fails"},
    {.name = "mail_type", .scope = Scope::job, .what = "when to notify: BEGIN, END, FAIL, separated by commas (default: END,FAIL)"},
    {.name = "filesystems", .scope = Scope::job, .what = "file systems that the job needs (PBS)"},
    {.name = "chunk_resources", .kind = KeyKind::list, .scope = Scope::job, .what = "further resources of each node, such as gpu_type=a100 (PBS, repeatable)"},
    {.name = "cpus_per_node", .kind = KeyKind::count, .scope = Scope::job, .what = "CPUs to request on each node (default: the scheduler's own number)"},
    {.name = "mem", .kind = KeyKind::memory, .scope = Scope::job, .what = "memory on each node, such as 64G"},
    {.name = "mem_per_cpu", .kind = KeyKind::memory, .scope = Scope::job, .what = "memory for each CPU, such as 4G"},
    {.name = "exclusive", .kind = KeyKind::onoff, .scope = Scope::job, .what = "share the nodes with no other job", .builtin = "false"},
    {.name = "array", .kind = KeyKind::array, .scope = Scope::job, .what = "a job array, such as 0-3 or 0-9%2: each task has a run folder of its own"},
    {.name = "dependency", .scope = Scope::job, .what = "the job starts after others, such as afterok:123"},
    {.name = "output", .scope = Scope::job, .what = "file for the job's output (default: the scheduler's; with --submit, in RUN_DIR/jobs)"},
    {.name = "error", .scope = Scope::job, .what = "file for the job's standard error (default: that of its output)"},
    {.name = "spare_nodes", .kind = KeyKind::number, .scope = Scope::job, .what = "extra nodes, to replace bad ones (Slurm)", .builtin = "0"},
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

bool is_number(const std::string& text, long long min) {
  long long value = 0;
  return text::parse_integer(text, value) && value >= min && value <= 100'000'000;
}

bool is_amount(const std::string& text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end && value >= 0 && std::isfinite(value);
}

bool is_assignment(const std::string& text) {
  const auto end = text.find('=');
  if (end == std::string::npos || end == 0 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_accepted(const Key& key, const std::string& value) {
  if (automatic_value(key, value)) return true;
  const auto choices = text::split(std::string(key.choices), ' ');
  switch (key.kind) {
    case KeyKind::count:
      return is_number(value, 1);
    case KeyKind::number:
      return is_number(value, 0);
    case KeyKind::amount:
      return is_amount(value);
    case KeyKind::onoff:
      return text::parse_bool(value).has_value();
    case KeyKind::choice:
      return std::find(choices.begin(), choices.end(), value) != choices.end();
    case KeyKind::time:
      return parse_walltime(value).has_value();
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

std::string expected(const Key& key) {
  switch (key.kind) {
    case KeyKind::count:
      return "a whole number from 1";
    case KeyKind::number:
      return "a whole number from 0";
    case KeyKind::amount:
      return text::concat("a number from 0", key.automatic.empty() ? "" : ", or auto");
    case KeyKind::onoff:
      return "true or false";
    case KeyKind::choice:
      return "one of " + text::join(text::split(std::string(key.choices), ' '));
    case KeyKind::time:
      return "HH:MM:SS or D-HH:MM:SS";
    case KeyKind::gpus:
      return "a number of GPUs, such as 4 or a100:4";
    case KeyKind::memory:
      return "an amount of memory, such as 64G";
    case KeyKind::array:
      return "the numbers of an array, such as 0-3 or 0-9%2";
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

std::optional<std::string> automatic_value(const Key& key, std::string_view word) {
  const auto begin = text::concat(word, '=');
  for (const auto& one : text::split(std::string(key.automatic), ' ')) {
    if (one.starts_with(begin)) return one.substr(begin.size());
  }
  return {};
}

std::string flag_of(const Key& key) {
  std::string flag(key.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(const Key& key) {
  std::string variable = "HORTATOR_";
  for (const char c : key.name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
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
    if (is_accepted(key, value)) continue;
    const bool is_fp8 = key.name == "mixed_precision" && value == "fp8";
    throw UsageError({.what = text::concat(begin, expected(key), ", got ", text::quote(value)),
                      .hint = is_fp8 ? "use bf16: fp8 is not supported" : ""});
  }
}

}  // namespace hortator::launching
