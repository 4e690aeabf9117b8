// Keepers of checkpoints in memory where a call of theirs fails: they say so, and the next one has its folder.
#include "tools/keepers/kept_folder.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/faults/faults.hpp"

using namespace hortator;
using faults::Kind;
namespace fs = std::filesystem;

namespace {

/// A folder whose name no other path contains.
fs::path keepers_root() { return fs::absolute("faulty_keepers"); }

fs::path folder_of(const char* launch) { return keepers_root() / (tools::kept_prefix() + launch); }

/// What a killed launch leaves.
void leave(const fs::path& folder) {
  fs::create_directories(folder / "run-1");
  std::ofstream(folder / "keeper.lock").flush();
}

/// The error of a keeper that begins and ends; empty: none.
std::string keep_once(const fs::path& folder) {
  try {
    const tools::KeptFolder kept(folder);
    kept.remove(std::chrono::milliseconds(10));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a keeper names the folder that it cannot make, and the next one begins and leaves nothing") {
  for (const int error : {EIO, ENOSPC, EACCES, ESTALE}) {
    for (const bool on : {false, true}) {
      long calls = 0;
      for (long at = 1;; ++at) {
        fs::remove_all(keepers_root());
        leave(folder_of("killed"));
        faults::arm(keepers_root().string(), {.kind = Kind::error, .at = at, .error = error, .on = on});
        const auto problem = keep_once(folder_of("1"));
        calls = faults::disarm();
        if (faults::last_hit().empty()) break;
        INFO("error " << error << " at call " << at << (on ? " and after it (" : " (") << faults::last_hit() << ")");
        if (!problem.empty()) CHECK_THAT(problem, Catch::Contains(folder_of("1").string()));
        CHECK(keep_once(folder_of("1")).empty());
        CHECK_FALSE(fs::exists(folder_of("1")));
        if (fs::is_empty(keepers_root())) continue;
        // What is left of a folder without its lock may be a new one for a minute.
        fs::last_write_time(folder_of("killed"), fs::file_time_type::clock::now() - std::chrono::minutes(2));
        CHECK(keep_once(folder_of("1")).empty());
        CHECK(fs::is_empty(keepers_root()));
      }
      CHECK(calls > 2);
    }
  }
  fs::remove_all(keepers_root());
}
