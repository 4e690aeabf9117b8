#include "tools/scale/runs.hpp"

#include <array>
#include <cstdio>
#include <hortator/error.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/whole_file.hpp"
#include "tools/programs.hpp"
#include "tools/rehearse/logged_run.hpp"
#include "tools/scale/study_folder.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

Command launch_command(const ScalePlan& plan, int ranks) {
  const int nodes = nodes_of(plan, ranks);
  Command command = {own_program(), "launch"};
  if (nodes == 0) {
    command.insert(command.end(), {"-n", std::to_string(ranks)});
  } else {
    command.insert(command.end(),
                   {"--nodes", std::to_string(nodes), "--ranks-per-node", std::to_string(ranks / nodes)});
  }
  command.insert(command.end(), plan.launch.begin(), plan.launch.end());
  return command;
}

/// Runs a command with its output in a file; throws Error if it fails.
void run_into(const Command& command, const fs::path& log) {
  const int code = run_logged(command, log);
  if (code == 0) return;
  throw Error({.what = text::concat("A run of the study ended with exit code ", code),
               .why = "its time is missing",
               .hint = "read " + log.string()});
}

std::string name_of(const ScaleRun& run) { return text::concat(run.ranks, '_', run.repeat + 1); }

}  // namespace

std::string checksum_of(const std::string& program) {
  const auto file = find_program(program);
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(core::hash(read_text(file.value_or(program)))));
  return digits.data();
}

/// The run's own record of its energy, over all ranks; 0 where nothing was measured.
double joules_of(const fs::path& run_folder) {
  const auto record = core::parse_record(core::read_whole(run_folder / "outcome.json").value_or(""));
  if (!record.is_object() || !record.contains("energy") || !record["energy"].is_object()) return 0;
  return core::number_of(record["energy"].value("joules", 0.0));
}

void make_run(const fs::path& folder, const ScalePlan& plan, const ScaleRun& run) {
  const auto run_folder = folder / ("run_" + name_of(run));
  const auto measured = fs::absolute(run_folder / "measure.json");
  std::error_code ignored;
  fs::remove_all(run_folder, ignored);
  fs::create_directories(run_folder);
  auto command = launch_command(plan, run.ranks);
  // Set by env, since the ranks may be on other machines.
  command.insert(command.end(), {"env", "HORTATOR_MEASURE=" + measured.string(),
                                 "HORTATOR_RUN_DIR=" + fs::absolute(run_folder).string()});
  command.insert(command.end(), plan.command.begin(), plan.command.end());
  run_into(command, run_folder / "output.log");

  auto measure = fs::exists(measured) ? observe::parse_measure(read_text(measured)) : std::nullopt;
  if (!measure) {
    throw Error({.what = "A run of the study has measured nothing",
                 .why = "only programs that create a hortator::Accelerator are timed",
                 .hint = "read " + (run_folder / "output.log").string()});
  }
  measure->joules = joules_of(run_folder);
  write_point(folder, {.run = run, .measure = *measure, .program = checksum_of(plan.command.front())});
  std::cout << text::count(run.ranks, "rank") << ", repeat " << run.repeat + 1 << " of " << plan.repeats << ": "
            << units::duration(std::chrono::duration<double>(measure->seconds_per_update)) << " per update, "
            << measure->updates << " updates" << std::endl;
}

void measure_collectives(const fs::path& folder, const ScalePlan& plan, int ranks) {
  auto command = launch_command(plan, ranks);
  // Enough sizes to fit a line, and fast even where ranks share cores.
  const Command bench = {own_program(), "bench",  "collectives", "--json", "--case",   "all_reduce",
                         "--reference", "memcpy", "--steps",     "10",     "--blocks", "3",
                         "--size",      "4KiB",   "--size",      "256KiB", "--size",   "16MiB"};
  command.insert(command.end(), bench.begin(), bench.end());
  const auto log = folder / "collectives.log";
  run_into(command, log);
  const auto network = network_in(ranks, read_text(log));
  const nlohmann::ordered_json json = {
      {"ranks", ranks}, {"latency", network.latency}, {"seconds_per_byte", network.seconds_per_byte}};
  write_text(folder / collectives_file, json.dump(2));
}

}  // namespace hortator::tools
