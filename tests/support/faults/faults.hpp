#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Injects disk faults. Linked into a program, or preloaded, this replaces the C library's functions that change files.
/// Calls on files below a chosen folder are counted, and one of them fails.
namespace hortator::faults {

enum class Kind {
  count,     ///< no fault
  kill,      ///< the process is killed instead of the call
  error,     ///< the call fails with Fault::error
  shorter,   ///< a write writes half of its bytes; all other calls work
  delay,     ///< the call takes Fault::seconds longer, as on a file system that does not answer
  no_locks,  ///< every file lock is refused with ENOLCK, as on mounts without them; all other calls work
  record     ///< no fault; recorded() returns the calls
};

struct Fault {
  Kind kind = Kind::count;
  long at = 0;      ///< the number of the call, from 1
  int error = 0;    ///< an errno
  bool on = false;  ///< also at every later call: a disk that is full stays full
  double seconds = 0;
  bool reads = false;  ///< also count "read", "map", and "open" for reading
};

/// Starts to count calls on files whose paths contain `part`, and injects `fault`. A preloaded program is configured by
/// FAULT_PATH, FAULT_KIND (kill, shorter, delay, or the name of an errno), FAULT_AT, FAULT_ON, FAULT_SECONDS (a large
/// value: the call never returns) and FAULT_RANK (only on that rank, as set by any launcher).
void arm(std::string_view part, const Fault& fault);
/// Stops counting and injecting; returns the number of calls.
long disarm();

/// A call that changes files, or makes changes durable: "create", "open", "write", "close", "sync", "resize", "rename",
/// "make", "remove". With Fault::reads also "read" and "map".
struct Call {
  std::string what;
  std::string path;
  std::string to;  ///< of a rename
};
/// What the last call was that was made to fail since arm() ("write", ...); empty if none was.
std::string last_hit();
/// The calls since Kind::record was armed, in order.
std::vector<Call> recorded();

}  // namespace hortator::faults

/// Arms the next fault of FAULT_SERIES, as in "ENOSPC@1 EIO@4" (an errno, and the number of the call from now), and
/// returns its text; a null pointer after the last. On other ranks than FAULT_RANK nothing is armed. A program finds
/// this function by dlsym if the library is preloaded.
extern "C" __attribute__((visibility("default"))) const char* hortator_next_fault();
