// golden_replay FILE.json...: replays the cases of golden files with any names, and starts the ranks that each case
// needs. Prints a line for each case that differs from Accelerate, for each rule by which cases differ on purpose, and
// at the end "N passed, M failed (D on purpose)". Exit code 0 if none failed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/run.hpp>
#include <iostream>
#include <optional>
#include <set>
#include <span>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/command.hpp"
#include "launch/job/quote.hpp"
#include "mpi/communicator.hpp"
#include "replay.hpp"
#include "tools/launch/mpirun.hpp"

using namespace hortator;
using golden::Format;
using golden::json;
using golden::ReplaySummary;

namespace {

namespace fs = std::filesystem;

constexpr const char* as_ranks = "--as-ranks";  // FILE FIRST RESULT: arguments of the started ranks
constexpr int max_crashes = 5;                  // of ranks per file; then the rest of the file counts as failed

fs::path own_path() { return fs::read_symlink("/proc/self/exe"); }

/// A new temporary folder, which the destructor removes.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "golden_replay.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error({.what = "Cannot create a folder in '" + fs::temp_directory_path().string() + "'"});
  }
  ~Scratch() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const char* name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

// Returns the command that replays on `ranks` ranks. They yield, as cores may be fewer, and write only to `scratch`.
std::string command_for(int ranks, const std::string& file, std::size_t first, const Scratch& scratch) {
  const auto mpirun = tools::own_mpirun().value_or(tools::built_mpirun());
  const launching::LaunchEnvironment facts{
      .is_root = geteuid() == 0, .mpirun = mpirun.program, .mpi = mpirun.flavor, .mpi_major = mpirun.major, .cores = 0};
  launching::LaunchRequest request{.ranks = ranks,
                                   .program = own_path(),
                                   .arguments = {as_ranks, file, std::to_string(first), scratch / "result"},
                                   .variables = {"OMP_NUM_THREADS=1", "OMPI_MCA_mpi_yield_when_idle=1",
                                                 text::concat("HORTATOR_RUN_DIR=", (scratch / "run").string())}};
  if (std::getenv("HORTATOR_TIMEOUT") == nullptr) request.variables.emplace_back("HORTATOR_TIMEOUT=60s");
  return launching::shell_line(launching::command_line(request, facts)) + " >" +
         launching::shell_quote((scratch / "output").string()) + " 2>&1";
}

ReplaySummary all_failed(std::span<const json> cases, const std::string& why) {
  ReplaySummary summary;
  for (const auto& one : cases) summary.failures.push_back(text::concat(golden::name_of_case(one), ": ", why));
  return summary;
}

// Returns the summary that the ranks wrote last.
ReplaySummary read_summary(const Scratch& scratch) {
  if (!fs::exists(scratch / "result")) return {};
  return json::parse(core::read_whole(scratch / "result").value_or("")).get<ReplaySummary>();
}

// If a case ends its ranks, that case fails, and new ranks continue with the next one.
ReplaySummary replay_by_ranks(const Format& format, const json& file, const std::string& path, int ranks) {
  const auto cases = golden::cases_for(format, file, ranks);
  ReplaySummary all;
  for (int crashes = 0; all.judged() < cases.size();) {
    const Scratch scratch;
    const int status = std::system(command_for(ranks, path, all.judged(), scratch).c_str());
    all += read_summary(scratch);
    if (status == 0 && all.judged() == cases.size()) break;
    std::cerr << core::read_whole(scratch / "output").value_or("");
    const bool continues = ++crashes < max_crashes;
    const auto rest = std::span(cases).subspan(std::min(all.judged(), cases.size() - 1));
    all += all_failed(rest.first(continues ? 1 : rest.size()),
                      text::concat("its ", text::count(ranks, "rank"), " ended with code ",
                                   WIFEXITED(status) ? WEXITSTATUS(status) : status));
  }
  return all;
}

ReplaySummary replay_those_for(std::optional<int> ranks, const Format& format, const json& file,
                               const std::string& path) {
  if (!ranks) return all_failed(golden::cases_for(format, file, ranks), "the number of ranks is missing");
  return *ranks == 0 ? golden::replay(format, file, 0) : replay_by_ranks(format, file, fs::absolute(path), *ranks);
}

ReplaySummary replay_file(const std::string& path) {
  const auto file = golden::read_file(path);
  const auto& format = golden::format_of(file);
  std::set<std::optional<int>> worlds;
  for (const auto& one : file.at("cases")) worlds.insert(golden::ranks_for(format, one));
  ReplaySummary summary;
  for (const auto ranks : worlds) summary += replay_those_for(ranks, format, file, path);
  return summary;
}

void print(const std::string& path, const ReplaySummary& summary) {
  for (const auto& failure : summary.failures) std::cout << path << ": " << failure << '\n';
  for (const auto& [rule, cases] : summary.rules)
    std::cout << path << ": " << text::count(cases, "case") << " on purpose: " << rule << '\n';
}

int replay_files(const std::vector<std::string>& paths) {
  ReplaySummary all;
  for (const auto& path : paths) {
    try {
      const auto summary = replay_file(path);
      print(path, summary);
      all += summary;
    } catch (const std::exception& error) {
      std::cerr << "golden_replay: " << path << ": " << error.what() << '\n';
      return 2;
    }
  }
  std::cout << all.passed << " passed, " << all.failed() << " failed (" << all.on_purpose() << " on purpose)\n";
  return all.failed() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Writes the summary. The file is complete at any time, even if the ranks are killed.
void write_summary(const ReplaySummary& summary, const std::string& result) {
  const auto aside = result + ".new";
  std::ofstream(aside) << json(summary).dump(-1, ' ', false, json::error_handler_t::replace);
  fs::rename(aside, result);
}

void replay_as_rank(const std::string& path, std::size_t first, const std::string& result) {
  const bool writes = mpi::Communicator::world().rank() == 0;
  const auto file = golden::read_file(path);
  golden::replay(golden::format_of(file), file, mpi::Communicator::world().size(), first,
                 [&](const ReplaySummary& summary) {
                   if (writes) write_summary(summary, result);
                 });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 4 && arguments[0] == as_ranks)
    return hortator::run(argc, argv, [&] { replay_as_rank(arguments[1], std::stoul(arguments[2]), arguments[3]); });
  if (arguments.empty() || arguments[0].starts_with("-")) {
    std::cerr << "usage: golden_replay FILE.json...\n";
    return 2;
  }
  return replay_files(arguments);
}
