#pragma once

#include <string>

#include "runtime/run_folder.hpp"

/// The outcome of a run that has not failed.
namespace hortator::runtime {

/// hortator::run returns it after should_stop() was true: the run can be resumed. EX_TEMPFAIL of sysexits.h.
constexpr int stopped_exit_code = 75;

/// Records that the program has been asked to stop and can be resumed in another job.
void note_stopped();
bool was_stopped();

/// The content of outcome.json.
std::string outcome_record(const Run& run, bool stopped);

/// Writes outcome.json to the run folder and replaces that of an earlier run. If it cannot be written, it logs a
/// warning: the run itself has succeeded.
void write_outcome();
/// Removes the outcome of an earlier run. Called when a run begins.
void remove_stale_outcome(const std::filesystem::path& folder);

}  // namespace hortator::runtime
