#include "core/environment/known_variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"

namespace hortator::core {
namespace {

constexpr std::string_view prefix = "HORTATOR_";

// clang-format off
constexpr auto of_launches_and_processes = std::to_array<std::string_view>({
    // Settings of launches and jobs that do not reach the program, launch/settings/keys.cpp
    "RANKS", "NODES", "RANKS_PER_NODE", "GPUS_PER_NODE", "GPUS_PER_RANK", "GPUS", "GPU_IDS", "THREADS", "SRUN_MPI", "LAUNCHER",
    "LAUNCHER_OPTIONS", "CPU_BIND", "MAP_BY", "HOSTFILE", "HOST", "PROFILER", "MAX_RESTARTS", "RESTARTS_PER_HOUR", "MEMORY_FOLDER", "ON_CHECKPOINT", "PREFIX_OUTPUT", "LOG_DIR", "BCAST", "SITE",
    "SCHEDULER", "JOB_NAME", "TIME", "ACCOUNT", "QUEUE", "QOS", "CONSTRAINT", "RESERVATION", "LICENSES", "MAIL", "MAIL_TYPE",
    "PARALLEL_ENVIRONMENT", "FILESYSTEMS", "CHUNK_RESOURCES", "CPUS_PER_NODE", "MEM", "MEM_PER_CPU", "EXCLUSIVE", "ARRAY", "DEPENDENCY", "OUTPUT", "ERROR",
    "SPARE_NODES", "WARNING_SECONDS", "REQUEUES", "RUN_DIR", "DIRECTIVES", "MODULES", "ENVIRONMENT",
    // Read by programs
    "DEVICE", "SHARE_DEVICES", "DEBUG_STREAMS", "COMMUNICATOR", "GATHER_AHEAD", "GATHER_CAST", "TIMEOUT", "DEADLINE", "STOP_MARGIN",
    "KILL_GRACE", "LOG_LEVEL", "ESTIMATE", "ENERGY_ROOT", "METRICS_SECONDS", "COMMENT_SECONDS", "FILE_PATIENCE", "MPI_FAMILY",
    // Set by Hortator itself, by its module and by its scripts
    "RUN_NOTE", "CHECKPOINT_NOTE", "KEPT_MEMORY", "STOPPED_CODE", "MEASURE", "MEASURE_UPDATES", "REHEARSE", "MEMORY_REPORT", "STAGE_INPUTS", "LAUNCH_CALL", "LINK", "ROOT", "DIR", "LIB", "INC", "FORTRAN_INC", "MPI", "NO_INSTALL"
});
// clang-format on

}  // namespace

const std::vector<std::string>& known_variables() {
  static const auto known = [] {
    std::vector<std::string> names(of_launches_and_processes.begin(), of_launches_and_processes.end());
    for (const auto& key : program_settings()) names.push_back(variable_of(key).substr(prefix.size()));
    return names;
  }();
  return known;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view assignment(*entry);
    if (assignment.starts_with(prefix)) names.emplace_back(assignment.substr(0, assignment.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string meant_variable(std::string_view name) {
  if (!name.starts_with(prefix)) return "";
  const auto typed = name.substr(prefix.size());
  if (typed.starts_with("TEST_") || typed.starts_with("WITH_")) return "";  // of the tests and of CMake
  if (std::ranges::count(known_variables(), typed) > 0) return "";
  const auto near = text::nearest(typed, known_variables());
  return near.empty() ? "" : text::concat(prefix, near);
}

}  // namespace hortator::core
