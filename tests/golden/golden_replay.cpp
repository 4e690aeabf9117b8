// golden_replay FILE.json...: replays the cases of golden files, whatever the files are called, and starts the ranks
// that each case needs. Prints a line for each case that differs from the reference, for each rule by which cases
// differ on purpose, and at the end "N passed, M failed (D on purpose)". Exits with 0 when none failed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/run.hpp>
#include <iostream>
#include <set>

#include "base/text.hpp"
#include "base/whole_file.hpp"
#include "cli/mpirun.hpp"
#include "launching/command.hpp"
#include "launching/quote.hpp"
#include "mpi/communicator.hpp"
#include "replay.hpp"

using namespace hortator;
using golden::Format;
using golden::json;
using golden::Verdict;

namespace {

namespace fs = std::filesystem;

constexpr const char* as_ranks = "--as-ranks";  // FILE RESULT: what the started ranks are told

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
std::string command_for(int ranks, const std::string& file, const Scratch& scratch) {
  const auto mpirun = cli::own_mpirun().value_or(cli::built_mpirun());
  const launching::Facts facts{
      .is_root = geteuid() == 0, .mpirun = mpirun.program, .mpi = mpirun.flavor, .mpi_major = mpirun.major, .cores = 0};
  launching::Request request{.ranks = ranks,
                             .program = own_path(),
                             .arguments = {as_ranks, file, scratch / "result"},
                             .variables = {"OMP_NUM_THREADS=1", "OMPI_MCA_mpi_yield_when_idle=1",
                                           text::concat("HORTATOR_RUN_DIR=", (scratch / "run").string())}};
  if (std::getenv("HORTATOR_TIMEOUT") == nullptr) request.variables.emplace_back("HORTATOR_TIMEOUT=60s");
  return launching::shell_line(launching::command_line(request, facts)) + " >" +
         launching::shell_quote((scratch / "said").string()) + " 2>&1";
}

Verdict all_failed(const Format& format, const json& file, int ranks, const std::string& why) {
  Verdict verdict;
  for (const auto& one : file.at("cases")) {
    if (golden::is_for(format, one, ranks)) verdict.failures.push_back(text::concat("case ", one.at("id"), ": ", why));
  }
  return verdict;
}

Verdict replay_by_ranks(const Format& format, const json& file, const std::string& path, int ranks) {
  const Scratch scratch;
  const int status = std::system(command_for(ranks, path, scratch).c_str());
  if (status == 0 && fs::exists(scratch / "result"))
    return json::parse(base::read_whole(scratch / "result").value_or("")).get<Verdict>();
  std::cerr << base::read_whole(scratch / "said").value_or("");
  return all_failed(format, file, ranks,
                    text::concat("its ", text::count(ranks, "rank"), " ended with code ",
                                 WIFEXITED(status) ? WEXITSTATUS(status) : status));
}

Verdict replay_file(const std::string& path) {
  const auto file = golden::read_file(path);
  const auto& format = golden::format_of(file);
  std::set<int> worlds;
  for (const auto& one : file.at("cases")) worlds.insert(format.world(one));
  Verdict verdict;
  for (const int ranks : worlds)
    verdict += ranks == 0 ? golden::replay(format, file, 0) : replay_by_ranks(format, file, fs::absolute(path), ranks);
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

void replay_as_rank(const std::string& path, const std::string& result) {
  const auto world = mpi::Communicator::world();
  const auto file = golden::read_file(path);
  const auto verdict = golden::replay(golden::format_of(file), file, world.size());
  if (world.rank() == 0) std::ofstream(result) << json(verdict).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == as_ranks)
    return hortator::run(argc, argv, [&] { replay_as_rank(words[1], words[2]); });
  if (words.empty() || words[0].starts_with("-")) {
    std::cerr << "usage: golden_replay FILE.json...\n";
    return 2;
  }
  return replay_files(words);
}
