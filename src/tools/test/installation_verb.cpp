#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/environment/environment.hpp"
#include "launch/settings/keys.hpp"
#include "mpi/agree.hpp"
#include "runtime/world.hpp"
#include "tools/passing_run.hpp"
#include "tools/test/checks.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

// A settings file may ask for trainings of other kinds (accumulation, clipping, sharding); the checks have known
// results.
void forget_training_settings() {
  for (const auto& key : launching::keys()) {
    if (key.is_for_program && key.name != "cpu" && key.name != "debug") unsetenv(launching::variable_of(key).c_str());
  }
}

// A broken installation may hang; every check takes much less than a minute.
std::optional<std::chrono::milliseconds> default_timeout() {
  if (core::process_variables()("HORTATOR_TIMEOUT")) return {};
  return std::chrono::minutes(1);
}

/// @collective
bool run_checks(const mpi::Communicator& world, const fs::path& folder, bool as_json) {
  mpi::all_or_none(world, [&] {
    if (world.rank() == 0) fs::create_directory(folder);
  });
  Accelerator accelerator({.mixed_precision = Precision::no, .collective_timeout = default_timeout()});
  const auto& comm = accelerator.world().comm();
  std::vector<installation::CheckOutcome> outcomes;
  bool has_passed = true;
  for (const auto& check : installation::checks(accelerator, folder)) {
    outcomes.push_back(installation::run_check(comm, check));
    has_passed = has_passed && outcomes.back().has_passed;
  }
  if (comm.rank() == 0)
    std::cout << (as_json ? installation::to_json(outcomes) : installation::table(outcomes)) << std::flush;
  return has_passed;
}

}  // namespace

int installation_verb(const Arguments& arguments) {
  const auto values = parse(arguments, test_options());
  forget_training_settings();
  bool has_passed = false;
  const int code =
      run_temporarily("hortator-test", values["dir"].as<std::string>(), [&](const auto& world, const fs::path& folder) {
        has_passed = run_checks(world, folder, values.contains("json"));
      });
  if (code != 0) return code;
  return has_passed ? 0 : 1;
}

}  // namespace hortator::tools
