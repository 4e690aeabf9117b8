#include "tools/dialect.hpp"

#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "tools/programs.hpp"
#include "tools/settings_sources.hpp"

namespace hortator::tools {
namespace {

// The value of --NAME in the arguments before "--".
std::optional<std::string> given(const Arguments& arguments, const std::string& name) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i].starts_with(name + "=")) return arguments[i].substr(name.size() + 1);
    if (arguments[i] == name && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return {};
}

std::optional<std::string> scheduler_in_settings(const Arguments& arguments) {
  launching::Layer flags;
  for (const auto* name : {"scheduler", "site"}) {
    if (const auto value = given(arguments, std::string("--") + name)) flags[name] = {{*value}, "flag"};
  }
  auto file = given(arguments, "--config-file");
  if (!file) file = given(arguments, "--config_file");
  try {
    return gather_settings(flags, file).word("scheduler");
  } catch (const std::exception&) {
    return {};  // reported when the settings are read
  }
}

}  // namespace

launching::Dialect dialect_of_job(const Arguments& arguments) {
  const auto scheduler = scheduler_in_settings(arguments);
  if (scheduler) return *scheduler == "pbs" ? launching::Dialect::pbs : launching::Dialect::slurm;
  const bool has_pbs_only = !find_program("sbatch") && find_program("qsub");
  return has_pbs_only ? launching::Dialect::pbs : launching::Dialect::slurm;
}

launching::Dialect dialect_of_launch(const Arguments& /*arguments*/) {
  if (core::variable("SLURM_JOB_ID")) return launching::Dialect::slurm;
  return core::variable("PBS_JOBID") ? launching::Dialect::pbs : launching::Dialect::mpi;
}

}  // namespace hortator::tools
