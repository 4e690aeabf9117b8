#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// A disk that fails where a test wants it to. Linked into a program, or preloaded, this takes the place of the C
/// library's calls that change files; those below a chosen folder are counted, and one of them goes wrong.
namespace hortator::faults {

enum class Kind {
  count,     ///< nothing goes wrong
  kill,      ///< the process is killed in place of the call
  error,     ///< the call fails with Fault::error
  shorter,   ///< a write writes half of its bytes; all other calls work
  delay,     ///< the call takes Fault::seconds longer, as on a file system that does not answer
  no_locks,  ///< every file lock is refused with ENOLCK, as on mounts without them; all other calls work
  record     ///< nothing goes wrong, and recorded() tells what was called
};

struct Fault {
  Kind kind = Kind::count;
  long at = 0;      ///< the number of the call, from 1 on
  int error = 0;    ///< an errno
  bool on = false;  ///< also at every later call: a disk that is full stays full
  double seconds = 0;
};

/// From now on calls on files whose paths contain `part` are counted, and `fault` happens. In a preloaded program by
/// FAULT_PATH, FAULT_KIND (kill, shorter, delay, or an errno's name), FAULT_AT, FAULT_ON, FAULT_SECONDS (very many: the
/// call never returns), and on FAULT_RANK alone, by whichever launcher's variable.
void arm(std::string_view part, const Fault& fault);
/// No more; returns how many calls there were.
long disarm();

/// A call that changes files, or makes changes durable: "create", "open", "write", "sync", "resize", "rename", "make",
/// "remove".
struct Call {
  std::string what;
  std::string path;
  std::string to;  ///< of a rename
};
/// Those since Kind::record was armed, in their order.
std::vector<Call> recorded();

}  // namespace hortator::faults
