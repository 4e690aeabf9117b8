#pragma once

#include <exception>
#include <optional>
#include <string>

#include "runtime/run_folder.hpp"

namespace hortator::runtime {

/// A process of the run, as its user knows it.
struct Party {
  int rank = 0;
  std::string host = {};
  long pid = 0;
};

/// An exception that nobody caught, or what a watchdog has found.
struct Failure {
  std::string problem = {};
  std::string where = {};           ///< "file.cpp:12", when the exception knows
  std::optional<int> rank = {};     ///< whose it is, when all ranks throw it together
  std::optional<Party> party = {};  ///< whose it is, when another process tells of it
  std::string details = {};         ///< lines for the record alone
  int exit_code = 1;                ///< that the job is to end with; launchers do not always hand it on
};

/// Of whatever was thrown; without LibTorch's backtraces.
Failure describe(const std::exception_ptr& thrown);

/// "hortator: rank 3 (n1): problem": one line, whatever the problem's text.
std::string failure_line(const Run& run, const Failure& failure);

/// The content of failure.json.
std::string failure_record(const Run& run, const Failure& failure);

/// Prints the line and writes failure.json, if no other rank of the run does. Returns when the job is to be ended: at
/// once if it fell to this rank to speak, else after the time in which the speaking rank would have ended it.
void report(const Failure& failure);

}  // namespace hortator::runtime
