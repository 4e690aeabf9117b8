#include "mpi/environment.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/text/text.hpp"
#include "mpi/error.hpp"
#include "mpi/library.hpp"

namespace hortator::mpi {
namespace {

// MPI is called by the training thread and, where backward runs on devices, by LibTorch's threads for it, never by two
// at once. Only the watchdog's abort of a job that hangs may come at the same time.
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

}  // namespace

bool is_usable() { return flag(MPI_Initialized) && !flag(MPI_Finalized); }

void ensure_initialized() {
  if (flag(MPI_Finalized)) {
    throw MpiError({.what = "MPI was finalised before Hortator started",
                    .why = "MPI cannot be started twice in a process",
                    .hint = "create Accelerator and State before MPI_Finalize"});
  }
  int level = MPI_THREAD_SINGLE;
  check_library();  // before MPI starts: an incompatible library would crash in MPI_Init
  if (!flag(MPI_Initialized)) {
    check(MPI_Init_thread(nullptr, nullptr, needed_level, &level), "MPI_Init_thread");
    is_ours() = true;
  } else {
    check(MPI_Query_thread(&level), "MPI_Query_thread");
  }
  if (level < needed_level) {
    throw MpiError({.what = "MPI offers only " + level_name(level) + ", Hortator needs " + level_name(needed_level),
                    .why = "on devices LibTorch runs the backward pass, and what it reduces, on threads of its own",
                    .hint = "initialise with MPI_Init_thread(..., " + level_name(needed_level) + ", ...)"});
  }
}

// Not mpi::barrier, which has a time limit: a rank may write its results for hours after the others are done.
void arrive_at_end() {
  if (is_usable()) check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
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
  std::replace(line.begin(), line.end(), '\t', ' ');
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
  return line;
}

}  // namespace hortator::mpi
