#include <unistd.h>

#include <filesystem>
#include <hortator/run.hpp>
#include <iostream>

#include "base/text.hpp"
#include "cli/installation/checks.hpp"
#include "cli/verbs.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/variables.hpp"
#include "runtime/world.hpp"

namespace hortator::cli {
namespace {

namespace fs = std::filesystem;

/// A folder of the checks' own below the given one, that all ranks see; gone at the end.
class Scratch {
 public:
  Scratch(const mpi::Communicator& comm, const fs::path& below) : comm_(comm) {
    const auto name = text::concat("hortator-test-", mpi::host_name(), '-', getpid());
    path_ = fs::path(mpi::broadcast(comm, std::string_view((fs::weakly_canonical(below) / name).string())));
    mpi::all_or_none(comm, [&] {
      if (comm_.rank() == 0) fs::create_directory(path_);
    });
  }
  ~Scratch() {
    std::error_code ignored;
    if (comm_.rank() == 0) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& path() const { return path_; }

 private:
  const mpi::Communicator& comm_;
  fs::path path_;
};

// What is broken may hang: a minute is much for anything here.
std::optional<std::chrono::milliseconds> patience() {
  if (runtime::process_variables()("HORTATOR_TIMEOUT")) return {};
  return std::chrono::minutes(1);
}

/// @collective
bool try_out(const fs::path& folder) {
  Accelerator accelerator({.mixed_precision = Precision::no, .collective_timeout = patience()});
  const auto& comm = accelerator.world().comm();
  const Scratch scratch(comm, folder);
  std::vector<installation::Outcome> outcomes;
  bool has_passed = true;
  for (const auto& check : installation::checks(accelerator, scratch.path())) {
    outcomes.push_back(installation::carry_out(comm, check));
    has_passed = has_passed && outcomes.back().has_passed;
  }
  if (comm.rank() == 0) std::cout << installation::table(outcomes) << std::flush;
  mpi::barrier(comm);
  return has_passed;
}

}  // namespace

int installation_verb(const Arguments& arguments) {
  const auto values = parse(arguments, test_options());
  bool has_passed = false;
  std::string name = "hortator-test";
  char* argv[] = {name.data(), nullptr};
  const int code = hortator::run(1, argv, [&] { has_passed = try_out(values["dir"].as<std::string>()); });
  if (code != 0) return code;
  return has_passed ? 0 : 1;
}

}  // namespace hortator::cli
