#include "tools/flags.hpp"

#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "tools/programs.hpp"
#include "tools/settings_sources.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
using launching::KeyKind;
using launching::Scope;

bool has(Scope verb, const launching::Key& key) { return key.scope == Scope::both || key.scope == verb; }

std::string help_of(const launching::Key& key) {
  auto description = std::string(key.what);
  if (!key.choices.empty()) description += ": " + text::join(text::split(std::string(key.choices), ' '));
  return description;
}

// -n is the usual short option for the number of ranks.
std::string spelling(const launching::Key& key) { return launching::flag_of(key) + (key.name == "ranks" ? ",n" : ""); }

bool is_many(const launching::Key& key) { return key.kind == KeyKind::list || key.kind == KeyKind::variables; }

const char* value_name(const launching::Key& key) {
  if (key.kind == KeyKind::count || key.kind == KeyKind::number) return "N";
  if (key.kind == KeyKind::amount) return "X";
  if (key.kind == KeyKind::time) return "HH:MM:SS";
  if (key.kind == KeyKind::interval) return "STEPS|TIME";
  if (key.kind == KeyKind::gpus) return "[TYPE:]N";
  if (key.kind == KeyKind::memory) return "SIZE";
  if (key.kind == KeyKind::array) return "N-N[%N]";
  return key.kind == KeyKind::variables ? "NAME=VALUE" : "VALUE";
}

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

// For a job: the scheduler that the command line or the settings name, otherwise the one whose command is on PATH, and
// Slurm if there is none.
launching::Dialect dialect_of_job(const Arguments& arguments) {
  const auto scheduler = scheduler_in_settings(arguments);
  if (scheduler) return *scheduler == "pbs" ? launching::Dialect::pbs : launching::Dialect::slurm;
  const bool has_pbs_only = !find_program("sbatch") && find_program("qsub") && !core::variable("SGE_ROOT");
  return has_pbs_only ? launching::Dialect::pbs : launching::Dialect::slurm;
}

// For a launch: the scheduler of the job in which it runs, otherwise mpirun.
launching::Dialect dialect_of_launch(const Arguments& /*arguments*/) {
  if (core::variable("SLURM_JOB_ID")) return launching::Dialect::slurm;
  return core::variable("PBS_JOBID") ? launching::Dialect::pbs : launching::Dialect::mpi;
}

}  // namespace

void add_setting_flags(Options& options, Scope verb, const OwnFlags& own) {
  options.has_settings = true;
  options.is_launch = verb == Scope::launch;
  options.dialect = verb == Scope::launch ? dialect_of_launch : dialect_of_job;
  options.own_flags = own;
  auto add = options.named.add_options();
  for (const auto& key : launching::keys()) {
    if (!has(verb, key) || own.contains(launching::flag_of(key))) continue;
    if (is_many(key)) {
      add(spelling(key).c_str(), po::value<std::vector<std::string>>()->composing()->value_name(value_name(key)),
          help_of(key).c_str());
    } else if (key.kind == KeyKind::onoff) {
      add(spelling(key).c_str(), help_of(key).c_str());
    } else {
      add(spelling(key).c_str(), po::value<std::string>()->value_name(value_name(key)), help_of(key).c_str());
    }
  }
  add("config-file", po::value<std::string>()->value_name("FILE"),
      "read settings from FILE instead of hortator.yaml and the user's file; Accelerate's files work, too");
}

launching::Layer settings_from_flags(const po::variables_map& values, Scope verb, const OwnFlags& own) {
  launching::Layer layer;
  for (const auto& key : launching::keys()) {
    const auto flag = launching::flag_of(key);
    if (!has(verb, key) || own.contains(flag) || !values.contains(flag)) continue;
    launching::SettingValue given{.origin = "--" + flag};
    if (is_many(key)) {
      given.values = values[flag].as<std::vector<std::string>>();
    } else {
      given.values = {key.kind == KeyKind::onoff ? "true" : values[flag].as<std::string>()};
    }
    launching::check_values(key, given.values, given.origin + ": ");
    layer.emplace(key.name, std::move(given));
  }
  return layer;
}

std::optional<std::string> config_file_of(const po::variables_map& values) {
  return values.contains("config-file") ? std::optional(values["config-file"].as<std::string>()) : std::nullopt;
}

launching::Settings settings_of(const po::variables_map& values, Scope verb) {
  return gather_settings(settings_from_flags(values, verb), config_file_of(values));
}

}  // namespace hortator::tools
