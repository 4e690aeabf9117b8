#pragma once

#include <atomic>

/// The signal that ends this process, noted where the other ranks of the node can read it. Nothing can be noted of
/// SIGKILL.
namespace hortator::runtime {

/// What is noted instead of a signal when the process ends for a reason that it has reported itself.
constexpr int has_reported = -1;

/// From now on handlers for the signals of a crash note their number, write the rank's row of endings.jsonl, and pass
/// the signal on to the handler that was there before.
void record_crashes();

/// From now on note_last_signal() also writes to `place`. Calls record_crashes().
void add_last_signal(std::atomic<int>& place);
void remove_last_signal(std::atomic<int>& place);

/// Writes to all places. May be called in a signal handler.
void note_last_signal(int signal);

}  // namespace hortator::runtime
