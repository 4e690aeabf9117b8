// Preloaded. Simulates the faults of a machine that DOCTOR_FAULTS lists, separated by commas, each on all ranks or, as
// in "clock@1", on one. DOCTOR_GPUS: number of devices that CUDA reports with the fault "gpus".
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

namespace {

const char* own_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr ? rank : std::getenv("PMI_RANK");
}

bool has_fault(std::string_view name) {
  const char* listed = std::getenv("DOCTOR_FAULTS");
  std::string_view left = listed != nullptr ? listed : "";
  while (!left.empty()) {
    const auto fault = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), fault.size() + 1));
    if (fault.substr(0, fault.find('@')) != name) continue;
    const char* rank = own_rank();
    if (fault == name || (rank != nullptr && fault.substr(name.size() + 1) == rank)) return true;
  }
  return false;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// True during at::show_config(), which queries more properties of each device than this shim simulates.
bool describes_itself = false;

int refuse(int code) {
  errno = code;
  return -1;
}

}  // namespace

extern "C" {

int flock(int descriptor, int operation) {
  return has_fault("flock") ? refuse(ENOSYS) : real<int(int, int)>("flock")(descriptor, operation);
}

int fcntl(int descriptor, int command, ...) {
  std::va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (command == F_SETLK && has_fault("fcntl")) return refuse(ENOLCK);
  return real<int(int, int, ...)>("fcntl")(descriptor, command, argument);
}

int statvfs(const char* path, struct statvfs* facts) noexcept {
  if (has_fault("shm") && std::strcmp(path, "/dev/shm") == 0) return refuse(ENOENT);
  return real<int(const char*, struct statvfs*)>("statvfs")(path, facts);
}

long sysconf(int name) noexcept {
  if (name == _SC_NPROCESSORS_ONLN && has_fault("small")) return 1;
  return real<long(int)>("sysconf")(name);
}

// "small": the machine has one CPU. "one_cpu": the first rank may use one CPU, the others three.
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* mask) noexcept {
  const int code = real<int(pid_t, size_t, cpu_set_t*)>("sched_getaffinity")(process, bytes, mask);
  const char* rank = own_rank();
  const bool is_small = has_fault("small");
  if (code != 0 || rank == nullptr || (!is_small && !has_fault("one_cpu"))) return code;
  const bool is_first = is_small || std::strcmp(rank, "0") == 0;
  CPU_ZERO_S(bytes, mask);
  for (int cpu = is_first ? 0 : 1; cpu < (is_first ? 1 : 4); ++cpu) CPU_SET_S(static_cast<size_t>(cpu), bytes, mask);
  return 0;
}

int fsync(int descriptor) { return has_fault("fsync") ? refuse(EIO) : real<int(int)>("fsync")(descriptor); }

int rename(const char* from, const char* to) noexcept {
  return has_fault("rename") ? refuse(EXDEV) : real<int(const char*, const char*)>("rename")(from, to);
}

int uname(utsname* names) noexcept {
  const int code = real<int(utsname*)>("uname")(names);
  if (has_fault("kernel")) std::snprintf(names->release, sizeof names->release, "4.18.0-553.el8_10.x86_64");
  return code;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int code = real<int(clockid_t, timespec*)>("clock_gettime")(clock, time);
  if (clock == CLOCK_REALTIME && has_fault("clock")) time->tv_sec += 30;
  return code;
}

// "bits": this rank has another hash of one kernel. MPI's handles are passed on as they are: both kinds, pointers and
// numbers, are one register.
int MPI_Gatherv(const void* sent, int count, void* sent_type, void* received, const int* counts, const int* offsets,
                void* received_type, int root, void* comm) {
  std::string text(static_cast<const char*>(sent), static_cast<std::size_t>(std::max(count, 0)));
  constexpr std::string_view kernel = "\"softmax bfloat16\",\"";
  const auto begin = text.find(kernel);
  if (has_fault("bits") && begin != std::string::npos) {
    auto& digit = text[begin + kernel.size()];
    digit = digit == '0' ? '1' : '0';
  }
  using Gatherv = int(const void*, int, void*, void*, const int*, const int*, void*, int, void*);
  return real<Gatherv>("MPI_Gatherv")(text.data(), count, sent_type, received, counts, offsets, received_type, root,
                                      comm);
}

int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  if (!has_fault("hdf5")) return real<int(unsigned*, unsigned*, unsigned*)>("H5get_libversion")(major, minor, release);
  *major = 1;
  *minor = 99;
  *release = 3;
  return 0;
}

int ncclGetVersion(int* version) {
  if (has_fault("nccl")) {
    *version = 20304;
    return 0;
  }
  const auto next = real<int(int*)>("ncclGetVersion");
  return next == nullptr ? 1 : next(version);
}

// Sets only the UUID, which follows the name of 256 bytes.
int cudaGetDeviceProperties(void* properties, int index) {
  if (!has_fault("gpus")) return real<int(void*, int)>("cudaGetDeviceProperties")(properties, index);
  std::memset(static_cast<char*>(properties) + 256, index + 1, 16);
  return 0;
}

int cudaGetDeviceProperties_v2(void* properties, int index) {
  if (!has_fault("gpus")) return real<int(void*, int)>("cudaGetDeviceProperties_v2")(properties, index);
  return cudaGetDeviceProperties(properties, index);
}

}  // extern "C"

namespace c10::cuda {

signed char device_count() noexcept {
  const char* count = std::getenv("DOCTOR_GPUS");
  if (has_fault("gpus") && count != nullptr && !describes_itself) return static_cast<signed char>(std::atoi(count));
  const auto next = real<signed char()>("_ZN3c104cuda12device_countEv");
  return next == nullptr ? static_cast<signed char>(0) : next();
}

}  // namespace c10::cuda

namespace at {

std::string show_config() {
  describes_itself = true;
  auto config = real<std::string()>("_ZN2at11show_configB5cxx11Ev")();
  describes_itself = false;
  const auto begin = config.find("TORCH_VERSION=");
  if (has_fault("torch") && begin != std::string::npos)
    config.replace(begin, config.find(',', begin) - begin, "TORCH_VERSION=2.11.7");
  return config;
}

}  // namespace at
