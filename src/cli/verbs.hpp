#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"

/// The `hortator` command: one file a verb.
namespace hortator::cli {

struct Verb {
  std::string name;
  std::string summary;
  int (*run)(const Arguments& arguments);  ///< returns the exit code
};

const std::vector<Verb>& verbs();

int launch_verb(const Arguments& arguments);
int env_verb(const Arguments& arguments);
int checkpoint_verb(const Arguments& arguments);
int bench_verb(const Arguments& arguments);

/// "  launch  starts a program on several ranks", a line each
std::string listing(const std::vector<Verb>& verbs);

/// The one of that name. UsageError with the nearest one for a name that is none of them; `kind` says what they are.
const Verb& find(const std::vector<Verb>& verbs, const std::string& name, const std::string& kind);

/// Does what the command line says.
int run(const Arguments& arguments);

}  // namespace hortator::cli
