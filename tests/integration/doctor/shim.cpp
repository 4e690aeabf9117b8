// Preloaded: a machine with the one fault that DOCTOR_FAULT names, on all ranks or on DOCTOR_RANK alone.
#include <dlfcn.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

bool has_fault(const char* name) {
  const char* fault = std::getenv("DOCTOR_FAULT");
  if (fault == nullptr || std::strcmp(fault, name) != 0) return false;
  const char* only = std::getenv("DOCTOR_RANK");
  const char* rank =
      std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ? std::getenv("OMPI_COMM_WORLD_RANK") : std::getenv("PMI_RANK");
  return only == nullptr || (rank != nullptr && std::strcmp(only, rank) == 0);
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int refuse(int code) {
  errno = code;
  return -1;
}

}  // namespace

extern "C" {

int flock(int descriptor, int operation) {
  return has_fault("flock") ? refuse(ENOSYS) : real<int(int, int)>("flock")(descriptor, operation);
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

int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  if (!has_fault("hdf5")) return real<int(unsigned*, unsigned*, unsigned*)>("H5get_libversion")(major, minor, release);
  *major = 1;
  *minor = 99;
  *release = 3;
  return 0;
}

}  // extern "C"
