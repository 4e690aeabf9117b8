#pragma once

#include <string>

#include "runtime/run_folder.hpp"

/// How a run that did not fail has ended.
namespace hortator::runtime {

/// "Stopped, to be continued": what hortator::run gives back after should_stop() was true. EX_TEMPFAIL of sysexits.h.
constexpr int stopped_exit_code = 75;

/// The program has been told to leave, and may go on in another job.
void note_stopped();
bool was_stopped();

/// The content of outcome.json.
std::string outcome_record(const Run& run, bool stopped);

/// Writes outcome.json into the run folder; what an earlier run has left there is replaced. A folder that cannot be
/// written is a warning: the run itself was good.
void write_outcome();
/// A new run begins: how an earlier one has ended says nothing of it.
void remove_stale_outcome(const std::filesystem::path& folder);

}  // namespace hortator::runtime
