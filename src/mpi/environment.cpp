#include "mpi/environment.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/environment/environment.hpp"
#include "core/loaded_libraries.hpp"
#include "core/text/text.hpp"
#include "mpi/communicator.hpp"
#include "mpi/other_build.hpp"

namespace hortator::mpi {
namespace {

// MPI is called by the training thread and, where backward runs on devices, by LibTorch's threads for it, never by two
// at once. On CPUs only the training thread calls it. The watchdog's abort of a job that hangs may come at any time.
constexpr int needed_level = MPI_THREAD_SERIALIZED;

std::string level_name(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  return "MPI_THREAD_MULTIPLE";
}

bool& is_ours() {
  static bool ours = false;
  return ours;
}

std::atomic<bool>& aborting() {
  static std::atomic<bool> value = false;
  return value;
}

bool flag(int (*query)(int*)) {
  int value = 0;
  query(&value);
  return value != 0;
}

bool is_open_mpi(std::string_view version) { return version.find("Open MPI") != std::string_view::npos; }

// "4" of "Open MPI v4.1.4"
std::string_view major(std::string_view version) {
  const auto begin = version.find_first_of("0123456789");
  if (begin == std::string_view::npos) return "";
  const auto digits = version.substr(begin);
  return digits.substr(0, digits.find_first_not_of("0123456789"));
}

int thread_level() {
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level;
}

/// Throws if MPI's thread level lets only the thread that has initialised it call MPI, and this is another one.
void require_calling_thread() {
  const int level = thread_level();
  if (level >= needed_level || flag(MPI_Is_thread_main)) return;
  throw MpiError({.what = "MPI offers only " + level_name(level) + ", and this is not the thread that initialised it",
                  .why = "at this level only that thread may call MPI",
                  .hint = "use Hortator in that thread, or initialise with MPI_Init_thread(..., " +
                          level_name(needed_level) + ", ...)"});
}

/// A process without a launcher needs no daemon: Open MPI 4 would start one (0.2 s), for MPI_Comm_spawn. Programs that
/// the process starts later get the default: the value is changed in its place, because MPI's threads, which read the
/// environment as well, run by then.
class NoDaemon {
 public:
  NoDaemon() {
    for (const auto* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_MCA_ess_singleton_isolated"})
      if (core::variable(name)) return;
    value() = '1';
    putenv(setting().data());
  }
  ~NoDaemon() { value() = '0'; }
  NoDaemon(const NoDaemon&) = delete;
  NoDaemon& operator=(const NoDaemon&) = delete;

 private:
  static std::string& setting() {
    static auto* text = new std::string("OMPI_MCA_ess_singleton_isolated=0");  // the environment needs it to the end
    return *text;
  }
  static char& value() { return setting().back(); }
};

}  // namespace

bool is_usable() { return flag(MPI_Initialized) && !flag(MPI_Finalized); }

void ensure_initialized() {
  if (flag(MPI_Finalized)) {
    throw MpiError({.what = "MPI was finalised before Hortator started",
                    .why = "MPI cannot be started twice in a process",
                    .hint = "create Accelerator and State before MPI_Finalize"});
  }
  if (!flag(MPI_Initialized)) restart_for_launcher(is_open_mpi(built_library()) ? "openmpi" : "mpich");
  check_library();  // before MPI starts: an incompatible library would crash in MPI_Init
  if (flag(MPI_Initialized)) return require_calling_thread();
  const NoDaemon no_daemon;
  int level = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, needed_level, &level), "MPI_Init_thread");
  is_ours() = true;
}

void require_level_for_devices() {
  const int level = thread_level();
  if (level >= needed_level) return;
  throw MpiError({.what = "MPI offers only " + level_name(level) + ", Hortator needs " + level_name(needed_level),
                  .why = "on devices LibTorch runs the backward pass, and what it reduces, on threads of its own",
                  .hint = "initialise with MPI_Init_thread(..., " + level_name(needed_level) + ", ...)"});
}

// Not mpi::barrier, which has a time limit: a rank may write its results for hours after the others are done.
double arrive_at_end(double own) {
  double sum = own;
  if (is_usable()) check(MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  return sum;
}

void finalize_if_ours() {
  if (!is_ours() || !is_usable()) return;
  is_ours() = false;
  MPI_Finalize();
}

// Some launchers (MPICH's Hydra) kill the job at once and lose output that they have not passed on: wait a moment.
void abort_job(int exit_code) {
  aborting() = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (is_usable()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

bool is_aborting() { return aborting(); }

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return std::string(text::split(name.data(), '.').front());
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  // MPICH formats its table with tabs: "MPICH Version:      4.0.2"
  auto line = text::first_line(text::split(text.data(), ',').front());
  std::ranges::replace(line, '\t', ' ');
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
  return line;
}

std::string built_library() {
#if defined(OMPI_MAJOR_VERSION)
  return text::concat("Open MPI v", OMPI_MAJOR_VERSION, '.', OMPI_MINOR_VERSION, '.', OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
  return text::concat("Intel MPI ", I_MPI_VERSION);
#elif defined(MVAPICH2_VERSION)
  return text::concat("MVAPICH ", MVAPICH2_VERSION);
#elif defined(MPICH_VERSION)
  return text::concat("MPICH ", MPICH_VERSION);
#else
  return text::concat("an MPI of standard ", MPI_VERSION, '.', MPI_SUBVERSION);
#endif
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> files;
  // Skips their Fortran and C++ libraries, which have other names.
  for (const auto* beginning : {"libmpi.so", "libmpich.so", "libmpi_cray.so", "libmpi_gnu"}) {
    for (auto& file : core::loaded_libraries(beginning)) files.push_back(std::move(file));
  }
  return files;
}

bool is_compatible(std::string_view built, std::string_view loaded) {
  if (is_open_mpi(built) != is_open_mpi(loaded)) return false;
  return !is_open_mpi(built) || major(built) == major(loaded);
}

void check_library(std::string_view built, std::string_view loaded, std::span<const std::string> files) {
  constexpr auto hint =
      "load the MPI module that Hortator was built with, and no other, and build programs with it; `hortator doctor` "
      "says what is loaded";
  if (!is_compatible(built, loaded)) {
    throw MpiError(
        {.what = text::concat("The MPI that was loaded is ", loaded, ", this Hortator was built with ", built),
         .why = "their binary interfaces differ",
         .hint = hint});
  }
  if (files.size() > 1) {
    throw MpiError({.what = text::concat("This process has loaded two MPIs, ", text::join(files, " and "),
                                         "; this Hortator was built with ", built),
                    .why = "each would take the other's calls",
                    .hint = hint});
  }
}

void check_library() { check_library(built_library(), library_version(), loaded_libraries()); }

}  // namespace hortator::mpi
