#include "support/faults/faults.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

// System calls are made by number, because this file replaces the C library's functions.
namespace hortator::faults {
namespace {

struct State {
  std::atomic<bool> armed = false;
  std::array<char, 512> part = {};
  Fault fault;
  std::atomic<long> calls = 0;
  std::atomic<const char*> hit = "";
};
State state;
std::mutex recording;
std::vector<Call> calls_seen;

enum class CallOutcome { succeed, fail, shorten };

bool concerns(const char* path) { return path != nullptr && std::strstr(path, state.part.data()) != nullptr; }

std::string path_of(const char* path) { return path; }

/// Empty if the descriptor has no path.
std::string path_of(int descriptor) {
  std::array<char, 64> link{};
  std::array<char, PATH_MAX> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  const auto length = syscall(SYS_readlink, link.data(), path.data(), path.size() - 1);
  return {path.data(), static_cast<std::size_t>(length > 0 ? length : 0)};
}

bool concerns(int descriptor) { return concerns(path_of(descriptor).c_str()); }

template <typename File>
void record(const char* what, File file, const char* to) {
  const std::lock_guard lock(recording);
  calls_seen.push_back({.what = what, .path = path_of(file), .to = to});
}

void wait(double seconds) {
  timespec left = {.tv_sec = static_cast<time_t>(seconds),
                   .tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  while (syscall(SYS_nanosleep, &left, &left) != 0) continue;
}

template <typename File>
CallOutcome outcome_of(File file, const char* what, const char* to = "") {
  if (!state.armed || state.fault.kind == Kind::no_locks || !concerns(file)) return CallOutcome::succeed;
  const long call = ++state.calls;
  const auto& fault = state.fault;
  if (fault.kind == Kind::record) record(what, file, to);
  if (fault.kind == Kind::count || fault.kind == Kind::record || call < fault.at || (call > fault.at && !fault.on))
    return CallOutcome::succeed;
  if (fault.kind == Kind::kill) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  state.hit = what;
  if (fault.kind == Kind::shorter) return CallOutcome::shorten;
  if (fault.kind == Kind::delay) {
    wait(fault.seconds);
    return CallOutcome::succeed;
  }
  errno = fault.error;
  return CallOutcome::fail;
}

bool refuses_lock(int file) {
  if (!state.armed || state.fault.kind != Kind::no_locks || !concerns(file)) return false;
  ++state.calls;
  errno = ENOLCK;
  return true;
}

bool is_lock(int command) { return command == F_SETLK || command == F_SETLKW || command == F_GETLK; }

std::size_t shortened(CallOutcome outcome, std::size_t bytes) {
  return outcome == CallOutcome::shorten && bytes > 1 ? bytes / 2 : bytes;
}

/// The outcome of a call that only reads: a fault only if Fault::reads.
template <typename File>
CallOutcome outcome_of_reading(File file, const char* what) {
  return state.armed && state.fault.reads ? outcome_of(file, what) : CallOutcome::succeed;
}

/// The outcome of closing a file: file systems of networks report there what they could not write.
CallOutcome outcome_of_closing(int file) {
  const auto flags = syscall(SYS_fcntl, file, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? outcome_of(file, "close") : CallOutcome::succeed;
}

/// What closing returns: the file is closed in any case.
int closed(int result, CallOutcome outcome) {
  if (outcome != CallOutcome::fail) return result;
  errno = state.fault.error;
  return -1;
}

bool changes_files(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if (changes_files(flags) && outcome_of(path, (flags & O_CREAT) != 0 ? "create" : "open") == CallOutcome::fail)
    return -1;
  if (!changes_files(flags) && outcome_of_reading(path, "open") == CallOutcome::fail) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

mode_t mode_of(int flags, va_list& arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

/// The C library's function.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int error_named(std::string_view name) {
  if (name == "ENOSPC") return ENOSPC;
  if (name == "EDQUOT") return EDQUOT;
  return EIO;
}

/// The rank as set by the launcher; "0" without one.
std::string_view own_rank() {
  for (const auto* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const auto* rank = std::getenv(name)) return rank;
  }
  return "0";
}

Kind kind_named(std::string_view name) {
  if (name == "kill") return Kind::kill;
  if (name == "shorter") return Kind::shorter;
  return name == "delay" ? Kind::delay : Kind::error;
}

bool is_wanted_rank() {
  const auto* wanted = std::getenv("FAULT_RANK");
  return wanted == nullptr || own_rank() == wanted;
}

// A preloaded library is configured by the environment when the program starts.
struct FromEnvironment {
  FromEnvironment() {
    const auto* path = std::getenv("FAULT_PATH");
    const auto* kind = std::getenv("FAULT_KIND");
    const auto* at = std::getenv("FAULT_AT");
    const auto* seconds = std::getenv("FAULT_SECONDS");
    if (path == nullptr || kind == nullptr || at == nullptr || !is_wanted_rank()) return;
    arm(path, {.kind = kind_named(kind),
               .at = std::atol(at),
               .error = error_named(kind),
               .on = std::getenv("FAULT_ON") != nullptr,
               .seconds = seconds != nullptr ? std::atof(seconds) : 0});
  }
} from_environment;

}  // namespace

void arm(std::string_view part, const Fault& fault) {
  state.armed = false;
  state.part.fill('\0');
  part.copy(state.part.data(), state.part.size() - 1);
  state.fault = fault;
  state.calls = 0;
  state.hit = "";
  calls_seen.clear();
  state.armed = true;
}

long disarm() {
  state.armed = false;
  return state.calls;
}

std::string last_hit() { return state.hit.load(); }

std::vector<Call> recorded() { return calls_seen; }

}  // namespace hortator::faults

using hortator::faults::CallOutcome;
using hortator::faults::outcome_of;
using hortator::faults::outcome_of_reading;

// NOLINTBEGIN(readability-identifier-naming, cert-dcl50-cpp): names and forms are the C library's.
#pragma GCC visibility push(default)
extern "C" {

const char* hortator_next_fault() {
  static std::string_view left = std::getenv("FAULT_SERIES") != nullptr ? std::getenv("FAULT_SERIES") : "";
  static std::string fault;
  hortator::faults::disarm();
  if (left.empty()) return nullptr;
  fault = left.substr(0, left.find(' '));
  left.remove_prefix(std::min(left.size(), fault.size() + 1));
  const auto at = fault.find('@');
  if (hortator::faults::is_wanted_rank()) {
    hortator::faults::arm(std::getenv("FAULT_PATH"), {.kind = hortator::faults::Kind::error,
                                                      .at = std::atol(fault.c_str() + at + 1),
                                                      .error = hortator::faults::error_named(fault.substr(0, at))});
  }
  return fault.c_str();
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = hortator::faults::mode_of(flags, arguments);
  va_end(arguments);
  return hortator::faults::open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = hortator::faults::mode_of(flags, arguments);
  va_end(arguments);
  return hortator::faults::open_at(AT_FDCWD, path, flags, mode);
}

// Streams call the C library's own functions for files.
FILE* fopen(const char* path, const char* mode) {
  const bool only_reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  const auto outcome = only_reads ? outcome_of_reading(path, "open") : outcome_of(path, "create");
  return outcome == CallOutcome::fail ? nullptr : hortator::faults::next<decltype(fopen)>("fopen")(path, mode);
}

FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  const auto outcome = outcome_of(fileno(file), "write");
  if (outcome == CallOutcome::fail) return 0;
  return hortator::faults::next<decltype(fwrite)>("fwrite")(data, size, hortator::faults::shortened(outcome, count),
                                                            file);
}

int fflush(FILE* file) {
  if (file != nullptr && outcome_of(fileno(file), "write") == CallOutcome::fail) return EOF;
  return hortator::faults::next<decltype(fflush)>("fflush")(file);
}

int fclose(FILE* file) {
  const auto outcome = hortator::faults::outcome_of_closing(fileno(file));
  return hortator::faults::closed(hortator::faults::next<decltype(fclose)>("fclose")(file), outcome);
}

int close(int file) {
  const auto outcome = hortator::faults::outcome_of_closing(file);
  return hortator::faults::closed(static_cast<int>(syscall(SYS_close, file)), outcome);
}

ssize_t write(int file, const void* data, size_t bytes) {
  const auto outcome = outcome_of(file, "write");
  if (outcome == CallOutcome::fail) return -1;
  return syscall(SYS_write, file, data, hortator::faults::shortened(outcome, bytes));
}

ssize_t read(int file, void* data, size_t bytes) {
  const auto outcome = outcome_of_reading(file, "read");
  if (outcome == CallOutcome::fail) return -1;
  return syscall(SYS_read, file, data, hortator::faults::shortened(outcome, bytes));
}

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  const auto outcome = outcome_of_reading(file, "read");
  if (outcome == CallOutcome::fail) return -1;
  return syscall(SYS_pread64, file, data, hortator::faults::shortened(outcome, bytes), offset);
}

ssize_t pread64(int file, void* data, size_t bytes, off64_t offset) { return pread(file, data, bytes, offset); }

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (file >= 0 && outcome_of_reading(file, "map") == CallOutcome::fail) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(address, bytes, protection, flags, file, offset);
}

ssize_t writev(int file, const iovec* parts, int count) {
  if (outcome_of(file, "write") == CallOutcome::fail) return -1;
  return syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  const auto outcome = outcome_of(file, "write");
  if (outcome == CallOutcome::fail) return -1;
  return syscall(SYS_pwrite64, file, data, hortator::faults::shortened(outcome, bytes), offset);
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) { return pwrite(file, data, bytes, offset); }

// MPI-IO writes with this call.
ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  if (outcome_of(file, "write") == CallOutcome::fail) return -1;
  return syscall(SYS_pwritev, file, parts, count, offset, 0L);
}

ssize_t pwritev64(int file, const iovec* parts, int count, off64_t offset) {
  return pwritev(file, parts, count, offset);
}

int flock(int file, int operation) noexcept {
  return hortator::faults::refuses_lock(file) ? -1 : static_cast<int>(syscall(SYS_flock, file, operation));
}

int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  auto* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (hortator::faults::is_lock(command) && hortator::faults::refuses_lock(file)) return -1;
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}

int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  auto* argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(file, command, argument);
}

int fsync(int file) {
  return outcome_of(file, "sync") == CallOutcome::fail ? -1 : static_cast<int>(syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  return outcome_of(file, "sync") == CallOutcome::fail ? -1 : static_cast<int>(syscall(SYS_fdatasync, file));
}

int ftruncate(int file, off_t length) noexcept {
  return outcome_of(file, "resize") == CallOutcome::fail ? -1 : static_cast<int>(syscall(SYS_ftruncate, file, length));
}

int ftruncate64(int file, off64_t length) noexcept { return ftruncate(file, length); }

int rename(const char* from, const char* to) noexcept {
  return outcome_of(from, "rename", to) == CallOutcome::fail
             ? -1
             : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return outcome_of(path, "make") == CallOutcome::fail ? -1
                                                       : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int unlink(const char* path) noexcept {
  return outcome_of(path, "remove") == CallOutcome::fail ? -1
                                                         : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int rmdir(const char* path) noexcept {
  return outcome_of(path, "remove") == CallOutcome::fail
             ? -1
             : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int remove(const char* path) noexcept {
  struct stat facts {};
  if (lstat(path, &facts) != 0) return -1;
  return S_ISDIR(facts.st_mode) ? rmdir(path) : unlink(path);
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming, cert-dcl50-cpp)
