#pragma once

#include <hortator/error.hpp>
#include <iostream>
#include <sstream>
#include <string>

#include "tools/verbs.hpp"

namespace hortator::test {

struct Outcome {
  int code = 0;
  std::string output;
};

/// `hortator checkpoint ...`, with what it prints and says of errors.
inline Outcome run_verb(const tools::Arguments& arguments) {
  std::ostringstream output;
  auto* before = std::cout.rdbuf(output.rdbuf());
  Outcome outcome;
  try {
    outcome.code = tools::checkpoint_verb({arguments.begin() + 1, arguments.end()});
  } catch (const Error& error) {
    output << error.what();
    outcome.code = 2;
  }
  std::cout.rdbuf(before);
  outcome.output = output.str();
  return outcome;
}

}  // namespace hortator::test
