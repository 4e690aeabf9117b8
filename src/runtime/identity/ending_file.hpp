#pragma once

#include "runtime/identity/ending_record.hpp"
#include "runtime/identity/run_folder.hpp"

/// Writes this rank's row of the file status/endings.jsonl in the run's folder, and its block of status/flight.jsonl.
namespace hortator::runtime {

/// Writes the row and the block, unless this process has written the row. Failures are ignored: the rank is about to
/// end.
void write_ending(const Run& run, const EndingRecord& record);

/// Prepares the row of a rank that a signal ends, for write_signal_ending(). Call it whenever `run` has changed: a row
/// of an earlier run no longer counts.
void prepare_signal_ending(const Run& run);

/// Writes the prepared row with this signal, and the block, unless this process has written the row. May be called in a
/// signal handler.
void write_signal_ending(int signal);

/// Writes this rank's last collectives. Failures are ignored. May be called in a signal handler.
void write_flight();

}  // namespace hortator::runtime
