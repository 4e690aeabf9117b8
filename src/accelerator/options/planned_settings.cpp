#include "accelerator/options/planned_settings.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/environment/setting_key.hpp"
#include "core/log.hpp"
#include "core/passing_folder.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/whole_file.hpp"
#include "machine/device/device.hpp"
#include "machine/memory/memory_limit.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/identity/own_command.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array planned_settings = {"tensor",          "context",    "pipeline",          "pipeline_schedule",
                                         "micro_batches",   "zero_stage", "offload_optimizer", "offload_parameters",
                                         "recompute_layers"};
constexpr const char* rehearsed_runs = "6";

std::string bytes_in(const Json& run) {
  return units::bytes(static_cast<std::uint64_t>(run.at("memory").value("total", 0.0)));
}

std::string settings_of(const Json& run) {
  const auto settings = run.value("settings", "");
  return settings.empty() ? "no settings" : settings;
}

[[noreturn]] void refuse_plan(const Json& plan) {
  const auto memory = units::bytes(plan.at("machine").value("memory", std::uint64_t{0}));
  std::string smallest;
  double least = 0;
  for (const auto& run : plan.at("rejected")) {
    const double bytes = run.at("memory").value("total", 0.0);
    if (run.contains("problem") || bytes == 0 || (least > 0 && bytes >= least)) continue;
    least = bytes;
    smallest = text::concat("; the smallest that was rehearsed, with ", settings_of(run), ", needs ", bytes_in(run));
  }
  throw Error(
      {.what = text::concat("parallel = auto: nothing fits into the ", memory, " of each of ",
                            text::count(plan.value("ranks", 1), "rank"), smallest),
       .why = "a rank would run out of memory",
       .hint = "use more ranks, ranks with more memory, or a smaller batch; hortator plan shows what was tried"});
}

// What each rank on the main process's node has, while all of them work.
std::uint64_t memory_of_rank(const runtime::World& world) {
  if (!world.device().is_cpu()) return machine::free_memory(world.device());
  const auto available = machine::available_memory();
  if (!available)
    throw Error({.what = "parallel = auto: the system does not report its memory",
                 .hint = "set HORTATOR_PLAN_MACHINE to a file of hortator bench machine, which names that of a rank"});
  return *available / static_cast<std::uint64_t>(world.topology().local_size);
}

std::vector<std::string> plan_command(const AcceleratorOptions& options, const runtime::World& world) {
  std::vector<std::string> command = {runtime::hortator_command(),
                                      "plan",
                                      "--json",
                                      "--rehearse",
                                      rehearsed_runs,
                                      "-n",
                                      std::to_string(world.comm().size()),
                                      "--ranks-per-node",
                                      std::to_string(world.topology().local_size)};
  if (const auto machine = core::variable("HORTATOR_PLAN_MACHINE")) {
    command.insert(command.end(), {"--machine", *machine});
  } else {
    command.insert(command.end(), {"--memory", std::to_string(memory_of_rank(world))});
  }
  if (options.mixed_precision.value_or(Precision::no) != Precision::no) command.emplace_back("--16bit");
  command.emplace_back("--");
  for (auto& argument : runtime::own_arguments()) command.push_back(std::move(argument));
  return command;
}

std::string made_plan(const AcceleratorOptions& options, const runtime::World& world) {
  const core::PassingFolder folder(fs::temp_directory_path(), "hortator-plan");
  const runtime::Output output{.text = folder.path() / "plan.json", .errors = folder.path() / "log"};
  log::info("parallel = auto: the program is rehearsed to find its settings");
  const int code = runtime::run_to_end(plan_command(options, world), runtime::environment_outside_run(), output);
  auto text = core::read_whole(output.text).value_or("");
  const auto errors = core::read_whole(output.errors).value_or("");
  if (!core::parse_record<Json>(text).is_object())
    throw Error({.what = text::concat("parallel = auto: hortator plan failed with exit code ", code, ":\n", errors),
                 .hint = "run hortator plan with this program, and mend what it reports"});
  return text;
}

std::string recorded_or_made_plan(const AcceleratorOptions& options, const runtime::World& world) {
  const auto folder = options.project.dir.empty() ? runtime::current_run().folder : options.project.dir;
  const auto recorded = core::read_whole(folder / plan_file).value_or("");
  const bool is_ours = is_plan_of(recorded, runtime::own_arguments(), world.comm().size(), world.topology().local_size);
  return is_ours ? recorded : made_plan(options, world);
}

// Throws Json::exception where an entry is missing or of another type.
PlannedSettings planned_settings_in(const Json& plan) {
  if (plan.at("best").empty()) refuse_plan(plan);
  const auto& best = plan.at("best").at(0);
  PlannedSettings planned;
  for (const auto& one : best.at("variables")) {
    const auto assignment = one.get<std::string>();
    const auto at = assignment.find('=');
    planned.variables.emplace(assignment.substr(0, at), assignment.substr(at + 1));
  }
  planned.summary = text::concat(
      "parallel = auto: ", settings_of(best), " on ", text::count(plan.value("ranks", 1), "rank"), ", predicted ",
      units::duration(std::chrono::duration<double>(best.value("seconds", 0.0))), " an update and ", bytes_in(best),
      " of the ", units::bytes(plan.at("machine").value("memory", std::uint64_t{0})), " of a rank");
  return planned;
}

}  // namespace

PlannedSettings settings_in_plan(const std::string& json) {
  try {
    return planned_settings_in(core::parse_record<Json>(json));
  } catch (const Json::exception&) {
    throw Error({.what = "parallel = auto: the plan is not one of hortator plan --json"});
  }
}

bool is_plan_of(const std::string& json, const std::vector<std::string>& command, int ranks, int ranks_per_node) {
  const auto plan = core::parse_record<Json>(json);
  try {
    return plan.at("ranks") == ranks && plan.at("machine").at("ranks_per_node") == ranks_per_node &&
           plan.at("command") == Json(command);
  } catch (const Json::exception&) {
    return false;
  }
}

void refuse_beside_plan(const core::Variables& variables) {
  for (const auto* setting : planned_settings) {
    const auto name = core::variable_of(core::program_setting(setting));
    const auto value = variables(name.c_str());
    if (!value || value->empty()) continue;
    throw UsageError({.what = text::concat("parallel = auto with ", name, '=', *value),
                      .why = "a plan chooses this setting",
                      .hint = "leave one of the two out; what the program itself sets stays as it is"});
  }
}

core::Variables with_settings(core::Variables variables, PlannedSettings planned) {
  return [variables = std::move(variables), planned = std::move(planned)](const char* name) {
    const auto given = variables(name);
    const auto found = planned.variables.find(name);
    return given || found == planned.variables.end() ? given : std::optional(found->second);
  };
}

std::string plan_for(const AcceleratorOptions& options, const runtime::World& world) {
  std::string json;
  mpi::all_or_none(world.comm(), [&] {
    refuse_beside_plan(core::process_variables());
    if (world.topology().rank != 0) return;
    json = recorded_or_made_plan(options, world);
    log::info(settings_in_plan(json).summary);
  });
  return mpi::broadcast(world.comm(), json);
}

}  // namespace hortator::accelerator
