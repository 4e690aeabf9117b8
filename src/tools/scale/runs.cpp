#include "tools/scale/runs.hpp"

#include <array>
#include <cstdio>
#include <hortator/error.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "launch/job/quote.hpp"
#include "tools/launch/supervise.hpp"
#include "tools/programs.hpp"
#include "tools/scale/study_folder.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

Words launch_words(const tools::ScalePlan& plan, int ranks) {
  const int nodes = tools::nodes_of(plan, ranks);
  Words words = {own_program(), "launch"};
  if (nodes == 0) {
    words.insert(words.end(), {"-n", std::to_string(ranks)});
  } else {
    words.insert(words.end(), {"--nodes", std::to_string(nodes), "--ranks-per-node", std::to_string(ranks / nodes)});
  }
  return words;
}

/// All that it prints goes into a file.
void run_into(const Words& words, const fs::path& log) {
  const Words shell = {"/bin/sh", "-c",
                       "exec " + launching::shell_line(words) + " >" + launching::shell_quote(log.string()) + " 2>&1"};
  const int code = supervise(shell);
  if (code == 0) return;
  throw Error({.what = text::concat("a run of the study ended with code ", code),
               .why = "its time is missing",
               .hint = "read " + log.string()});
}

std::string name_of(const tools::ScaleRun& run) { return text::concat(run.ranks, '_', run.repeat + 1); }

}  // namespace

std::string checksum_of(const std::string& program) {
  const auto file = find_program(program);
  std::array<char, 24> words{};
  std::snprintf(words.data(), words.size(), "%016llx",
                static_cast<unsigned long long>(core::hash(read_text(file.value_or(program)))));
  return words.data();
}

void make_run(const fs::path& folder, const tools::ScalePlan& plan, const tools::ScaleRun& run) {
  const auto place = folder / ("run_" + name_of(run));
  const auto measured = fs::absolute(place / "measure.json");
  std::error_code none;
  fs::remove_all(place, none);
  fs::create_directories(place);
  auto words = launch_words(plan, run.ranks);
  // Given by env: the ranks may be on other machines.
  words.insert(words.end(),
               {"env", "HORTATOR_MEASURE=" + measured.string(), "HORTATOR_RUN_DIR=" + fs::absolute(place).string()});
  words.insert(words.end(), plan.words.begin(), plan.words.end());
  run_into(words, place / "output.log");

  const auto measure = fs::exists(measured) ? observe::parse_measure(read_text(measured)) : std::nullopt;
  if (!measure) {
    throw Error({.what = "a run of the study has measured nothing",
                 .why = "only programs with a hortator::Accelerator measure themselves",
                 .hint = "read " + (place / "output.log").string()});
  }
  write_point(folder, {.run = run, .measure = *measure, .program = checksum_of(plan.words.front())});
  std::cout << text::count(run.ranks, "rank") << ", repeat " << run.repeat + 1 << " of " << plan.repeats << ": "
            << units::duration(std::chrono::duration<double>(measure->seconds_per_update)) << " an update, "
            << measure->updates << " updates" << std::endl;
}

void measure_collectives(const fs::path& folder, const tools::ScalePlan& plan, int ranks) {
  auto words = launch_words(plan, ranks);
  // Enough for a line, and quick also where ranks share cores.
  const Words bench = {own_program(), "bench",  "collectives", "--json", "--case",   "all_reduce",
                       "--reference", "memcpy", "--steps",     "10",     "--blocks", "3",
                       "--size",      "4KiB",   "--size",      "256KiB", "--size",   "16MiB"};
  words.insert(words.end(), bench.begin(), bench.end());
  const auto log = folder / "collectives.log";
  run_into(words, log);
  const auto network = network_in(ranks, read_text(log));
  const nlohmann::ordered_json json = {
      {"ranks", ranks}, {"latency", network.latency}, {"seconds_per_byte", network.seconds_per_byte}};
  write_text(folder / collectives_file, json.dump(2));
}

}  // namespace hortator::tools
