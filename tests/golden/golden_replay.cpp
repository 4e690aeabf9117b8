// golden_replay FILE.json...: replays the cases of golden files, whatever the files are called, and starts the ranks
// that each case needs. Prints a line for each case that differs from the reference, for each rule by which cases
// differ on purpose, and at the end "N passed, M failed (D on purpose)". Exits with 0 when none failed.
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
using golden::Verdict;

namespace {

namespace fs = std::filesystem;

constexpr const char* as_ranks = "--as-ranks";  // FILE FIRST RESULT: what the started ranks are told
constexpr int max_ends = 5;                     // of ranks in the midst of a file, before the rest of it is given up

fs::path own_path() { return fs::read_symlink("/proc/self/exe"); }

/// A new folder that goes with it.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "golden_replay.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error({.what = "no folder can be made in " + fs::temp_directory_path().string()});
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

// Ranks that outnumber the cores must let each other run, and leave nothing where the user stands.
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
         launching::shell_quote((scratch / "said").string()) + " 2>&1";
}

Verdict all_failed(std::span<const json> cases, const std::string& why) {
  Verdict verdict;
  for (const auto& one : cases) verdict.failures.push_back(text::concat(golden::name_of_case(one), ": ", why));
  return verdict;
}

// What the ranks knew when they ended.
Verdict told(const Scratch& scratch) {
  if (!fs::exists(scratch / "result")) return {};
  return json::parse(core::read_whole(scratch / "result").value_or("")).get<Verdict>();
}

// A case that ends its ranks costs no other: new ranks go on behind it.
Verdict replay_by_ranks(const Format& format, const json& file, const std::string& path, int ranks) {
  const auto cases = golden::cases_for(format, file, ranks);
  Verdict all;
  for (int ends = 0; all.judged() < cases.size();) {
    const Scratch scratch;
    const int status = std::system(command_for(ranks, path, all.judged(), scratch).c_str());
    all += told(scratch);
    if (status == 0 && all.judged() == cases.size()) break;
    std::cerr << core::read_whole(scratch / "said").value_or("");
    const bool goes_on = ++ends < max_ends;
    const auto rest = std::span(cases).subspan(std::min(all.judged(), cases.size() - 1));
    all += all_failed(rest.first(goes_on ? 1 : rest.size()),
                      text::concat("its ", text::count(ranks, "rank"), " ended with code ",
                                   WIFEXITED(status) ? WEXITSTATUS(status) : status));
  }
  return all;
}

Verdict replay_those_for(std::optional<int> ranks, const Format& format, const json& file, const std::string& path) {
  if (!ranks) return all_failed(golden::cases_for(format, file, ranks), "it does not say how many ranks it needs");
  return *ranks == 0 ? golden::replay(format, file, 0) : replay_by_ranks(format, file, fs::absolute(path), *ranks);
}

Verdict replay_file(const std::string& path) {
  const auto file = golden::read_file(path);
  const auto& format = golden::format_of(file);
  std::set<std::optional<int>> worlds;
  for (const auto& one : file.at("cases")) worlds.insert(golden::ranks_for(format, one));
  Verdict verdict;
  for (const auto ranks : worlds) verdict += replay_those_for(ranks, format, file, path);
  return verdict;
}

void print(const std::string& path, const Verdict& verdict) {
  for (const auto& failure : verdict.failures) std::cout << path << ": " << failure << '\n';
  for (const auto& [rule, cases] : verdict.rules)
    std::cout << path << ": " << text::count(cases, "case") << " on purpose: " << rule << '\n';
}

int replay_files(const std::vector<std::string>& paths) {
  Verdict all;
  for (const auto& path : paths) {
    try {
      const auto verdict = replay_file(path);
      print(path, verdict);
      all += verdict;
    } catch (const std::exception& error) {
      std::cerr << "golden_replay: " << path << ": " << error.what() << '\n';
      return 2;
    }
  }
  std::cout << all.passed << " passed, " << all.failed() << " failed (" << all.on_purpose() << " on purpose)\n";
  return all.failed() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Complete at any time, also when the ranks are killed.
void tell(const Verdict& verdict, const std::string& result) {
  const auto aside = result + ".new";
  std::ofstream(aside) << json(verdict).dump(-1, ' ', false, json::error_handler_t::replace);
  fs::rename(aside, result);
}

void replay_as_rank(const std::string& path, std::size_t first, const std::string& result) {
  const bool tells = mpi::Communicator::world().rank() == 0;
  const auto file = golden::read_file(path);
  golden::replay(golden::format_of(file), file, mpi::Communicator::world().size(), first, [&](const Verdict& verdict) {
    if (tells) tell(verdict, result);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == as_ranks)
    return hortator::run(argc, argv, [&] { replay_as_rank(words[1], std::stoul(words[2]), words[3]); });
  if (words.empty() || words[0].starts_with("-")) {
    std::cerr << "usage: golden_replay FILE.json...\n";
    return 2;
  }
  return replay_files(words);
}
