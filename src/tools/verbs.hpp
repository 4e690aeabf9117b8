#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/options.hpp"

/// The `hortator` command: one file a verb.
namespace hortator::tools {

struct Verb {
  std::string name;
  std::string summary;
  /// Returns the exit code. Null: the verb needs LibTorch or MPI, whose loading costs others too much, and is a program
  /// of its own: libexec/hortator/hortator-<name>.
  int (*run)(const Arguments& arguments) = nullptr;
};

const std::vector<Verb>& verbs();

int config_verb(const Arguments& arguments);
int launch_verb(const Arguments& arguments);
int job_verb(const Arguments& arguments);
int watch_verb(const Arguments& arguments);
int plot_verb(const Arguments& arguments);
int scale_verb(const Arguments& arguments);
int completion_verb(const Arguments& arguments);
int env_verb(const Arguments& arguments);
int checkpoint_verb(const Arguments& arguments);
int bench_verb(const Arguments& arguments);
int doctor_verb(const Arguments& arguments);
int new_verb(const Arguments& arguments);
int test_verb(const Arguments& arguments);
int installation_verb(const Arguments& arguments);  ///< the ranks that test_verb starts

/// What `hortator test` understands, in the command and in its ranks.
Options test_options();
int estimate_memory_verb(const Arguments& arguments);

/// "  launch  starts a program on several ranks", a line each
std::string listing(const std::vector<Verb>& verbs);

/// The one of that name. UsageError with the nearest one for a name that is none of them; `kind` says what they are.
const Verb& find(const std::vector<Verb>& verbs, const std::string& name, std::string_view kind);

/// Does what the command line says.
int run(const Arguments& arguments);

/// A whole main(): `verb`, with its errors in a line on standard error. 2 for a UsageError, 1 for any other.
int run_guarded(int argc, char** argv, int (*verb)(const Arguments& arguments));

}  // namespace hortator::tools
