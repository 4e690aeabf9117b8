#pragma once

#include <exception>
#include <optional>
#include <string>

#include "runtime/identity/run_folder.hpp"

namespace hortator::runtime {

/// A process of the run, as the user knows it.
struct Party {
  int rank = 0;
  std::string host = {};
  long pid = 0;
};

/// An uncaught exception, or a stall that a watchdog has found.
struct Failure {
  std::string problem = {};
  std::string where = {};           ///< "file.cpp:12"; empty: unknown
  std::optional<int> rank = {};     ///< of the rank that caused it, when all ranks throw it together
  std::optional<Party> party = {};  ///< the process that caused it, when another one reports it
  std::string details = {};         ///< lines for the record only
  int exit_code = 1;                ///< of the job; launchers do not always pass it on
  std::string kind = "error";       ///< as in EndingRecord, for `hortator why`
  std::string type = {};            ///< as in EndingRecord
  int signal = 0;                   ///< that ended the rank; 0: none, or unknown
};

/// The failure for any thrown object, without LibTorch's backtraces.
Failure describe(const std::exception_ptr& thrown);

/// "hortator: rank 3 (n1): problem": one line, whatever the problem's text.
std::string failure_line(const Run& run, const Failure& failure);

/// The content of failure.json.
std::string failure_record(const Run& run, const Failure& failure);

/// Writes this rank's row of endings.jsonl, prints the line and writes failure.json unless another rank of the run does
/// so. Returns when the caller must end the job: at once if this rank has reported, otherwise after the time in which
/// the reporting rank should have ended it.
void report(const Failure& failure);

/// The same for a program that then ends itself by exit(), whose exit is not reported as another failure.
void report_before_exit(const Failure& failure);
bool was_reported_before_exit();

}  // namespace hortator::runtime
