#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/activity/activity.hpp"

/// The last collectives of this process, for the report of a job that stalls or dies. Any thread notes with plain
/// atomic stores and reads a clock twice.
namespace hortator::activity {

constexpr std::size_t flight_length = 128;

/// One stay of a thread in a collective: its start, or a wait for it.
struct FlightEntry {
  Operation operation = {};
  double begun = 0;  ///< seconds since 1970
  double ended = 0;  ///< 0: the thread was still in it
};

/// The newest stays, the oldest first.
struct FlightLog {
  std::array<FlightEntry, flight_length> entries = {};
  std::size_t count = 0;
};

/// Notes that a thread enters a collective. Returns its number, for note_exit().
std::uint64_t note_entry(const Operation& operation);
void note_exit(std::uint64_t number);

/// Stays that other threads change meanwhile are left out. Allocates nothing: a signal handler may call it.
void read_flight(FlightLog& flight);

}  // namespace hortator::activity
