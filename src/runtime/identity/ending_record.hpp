#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What each rank writes when it fails, in a file of one row for each rank: `hortator why` reads there which rank
/// began. Rows have the same length and their place, so that all ranks can write at once without a lock. Pure
/// functions.
namespace hortator::runtime {

constexpr auto endings_file = "endings.jsonl";  ///< in the folder `status` of a run's folder
constexpr std::size_t ending_bytes = 1024;

/// How a rank has ended.
struct EndingRecord {
  std::string run_id = {};
  int reporter = 0;  ///< the rank that wrote the row
  int rank = 0;      ///< the rank that failed, as the reporter knows it
  int world = 1;     ///< number of ranks
  int on_host = 0;   ///< of them on this host; 0: unknown
  std::string host = {};
  long pid = 0;
  double time = 0;           ///< seconds since 1970
  std::string kind = {};     ///< "error", "usage", "stall", "killed", "signal", "exit", "terminate"
  std::string type = {};     ///< of the exception: "c10::OutOfMemoryError"; of a stall: "absent vanished"
  int signal = 0;            ///< that ended the rank; 0: none, or unknown
  std::int64_t updates = 0;  ///< of the reporter
  int exit_code = 1;
  std::string where = {};  ///< "file.cpp:12"
  std::string problem = {};
};

/// Exactly ending_bytes, ending with a newline. A long problem is cut.
std::string to_row(EndingRecord record);
/// Returns nothing for an empty or invalid row.
std::optional<EndingRecord> parse_ending(std::string_view row);

}  // namespace hortator::runtime
