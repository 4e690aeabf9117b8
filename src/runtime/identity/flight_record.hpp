#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/activity/flight.hpp"
#include "runtime/identity/fixed_text.hpp"

/// The last collectives of each rank, in a file of one block of rows for each rank, which ranks write when they fail or
/// when a stall is suspected. Pure functions.
namespace hortator::runtime {

constexpr auto flight_file = "flight.jsonl";  ///< in the folder `status` of a run's folder
constexpr std::size_t flight_row_bytes = 256;
constexpr std::size_t flight_block_bytes = activity::flight_length * flight_row_bytes;

/// One stay of a rank in a collective.
struct FlightRecord {
  int rank = 0;
  std::string name = {};
  std::uint64_t bytes = 0;
  std::string group = {};  ///< the communicator's number, the same on all of its ranks
  int size = 0;            ///< the group's ranks
  std::uint64_t sequence = 0;
  double begun = 0;  ///< seconds since 1970
  double ended = 0;  ///< 0: the rank was still in it

  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};

using FlightRow = FixedText<flight_row_bytes>;
/// Allocates nothing: a signal handler may call it.
FlightRow flight_row(int rank, const activity::FlightEntry& entry);
/// All stays in the content of the file, in its order: by rank, then by time.
std::vector<FlightRecord> parse_flight(std::string_view content);

}  // namespace hortator::runtime
