#include "runtime/identity/checkpoint_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"

namespace hortator::runtime {

// In one call, and with a zero byte at the end, which no name contains: the launcher never takes a part of a name.
void publish_checkpoint(const std::filesystem::path& folder) {
  const auto note = core::variable("HORTATOR_CHECKPOINT_NOTE");
  if (!note) return;
  const auto entry = std::filesystem::absolute(folder).string() + '\0';
  const int file = ::open(note->c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const bool is_written = file >= 0 && ::write(file, entry.data(), entry.size()) == static_cast<ssize_t>(entry.size());
  const int problem = errno;
  if (file >= 0) ::close(file);
  if (is_written) return;
  throw Error({.what = text::concat("Cannot write to ", *note, ": ", std::strerror(problem)),
               .why = "the command of --on-checkpoint is not run for this checkpoint",
               .hint = "start the launch in a folder that the first node sees"});
}

}  // namespace hortator::runtime
