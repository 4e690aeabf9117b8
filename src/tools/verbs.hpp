#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/command_line/options.hpp"

/// The `hortator` command: one file for each verb.
namespace hortator::tools {

struct Verb {
  std::string name;
  std::string summary;
  /// Returns the exit code. Null for a verb that needs LibTorch or MPI: since these take long to load, such a verb is a
  /// separate program, libexec/hortator/hortator-<name>.
  int (*run)(const Arguments& arguments) = nullptr;
};

const std::vector<Verb>& verbs();

int keep_verb(const Arguments& arguments);  ///< of `hortator launch` only: not in verbs()
int config_verb(const Arguments& arguments);
int launch_verb(const Arguments& arguments);
int job_verb(const Arguments& arguments);
int sweep_verb(const Arguments& arguments);
int watch_verb(const Arguments& arguments);
int why_verb(const Arguments& arguments);
int compare_runs_verb(const Arguments& arguments);
int plot_verb(const Arguments& arguments);
int scale_verb(const Arguments& arguments);
int trace_verb(const Arguments& arguments);
int plan_verb(const Arguments& arguments);
int rehearse_verb(const Arguments& arguments);
int completion_verb(const Arguments& arguments);
int env_verb(const Arguments& arguments);
int checkpoint_verb(const Arguments& arguments);
int doctor_verb(const Arguments& arguments);
int new_verb(const Arguments& arguments);
int test_verb(const Arguments& arguments);
int installation_verb(const Arguments& arguments);  ///< the ranks that test_verb starts

/// The options of `hortator test`, for the command and for the ranks that it starts.
Options test_options();
int estimate_memory_verb(const Arguments& arguments);
int tokenize_verb(const Arguments& arguments);

/// One line for each verb: "  launch  starts a program on several ranks".
std::string listing(const std::vector<Verb>& verbs);

/// The verb of that name. Throws UsageError with the nearest name if there is none; `kind` is the noun for messages.
const Verb& find(const std::vector<Verb>& verbs, const std::string& name, std::string_view kind);

/// Runs the command line; returns the exit code.
int run(const Arguments& arguments);

/// The body of main(): runs `verb` and prints an exception to standard error. Returns 2 for a UsageError, 1 for any
/// other exception.
int run_guarded(int argc, char** argv, int (*verb)(const Arguments& arguments));

}  // namespace hortator::tools
