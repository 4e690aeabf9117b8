// Programs without hortator::run: when MPI is finalised, and how MPI of the application is used.
#include <mpi.h>

#include <cstdlib>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/state.hpp>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using hortator::State;

int well() {
  for (int i = 0; i < 2; ++i) State().wait_for_everyone();
  return 0;
}

int static_state() {
  static const State state;
  state.wait_for_everyone();
  return 0;
}

// The other ranks wait for this one, for ever unless the launcher detects that it exited without MPI_Finalize.
int exit_in_the_middle() {
  const State state;
  if (state.is_last_process()) std::exit(3);
  state.wait_for_everyone();
  return 0;
}

int caught() {
  try {
    const State state;
    if (state.is_last_process()) throw std::runtime_error("only here");
    state.wait_for_everyone();
  } catch (const std::exception&) {
    return 4;
  }
  return 0;
}

int own_mpi() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  well();
  int finalized = 1;
  MPI_Finalized(&finalized);
  MPI_Finalize();
  return finalized;
}

int own_communicator() {
  int level = 0;
  int rank = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
  const bool right = State({.communicator = MPI_Comm_c2f(alone)}).num_processes() == 1;
  MPI_Comm_free(&alone);
  MPI_Finalize();
  return right ? 0 : 1;
}

// On CPUs any level will do in the main thread, and only there unless MPI provides more than was requested.
int low_level() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &level);
  well();
  std::string problem;
  std::thread([&] {
    try {
      const State state;
    } catch (const hortator::Error& error) {
      problem = error.what();
    }
  }).join();
  MPI_Finalize();
  const bool is_refused = problem.find("MPI offers only MPI_THREAD_SINGLE") != std::string::npos;
  return is_refused == (level < MPI_THREAD_SERIALIZED) ? 0 : 1;
}

const std::map<std::string, std::function<int()>> endings = {
    {"well", well},          {"static_state", static_state}, {"exit_in_the_middle", exit_in_the_middle},
    {"caught", caught},      {"own_mpi", own_mpi},           {"own_communicator", own_communicator},
    {"low_level", low_level}};

}  // namespace

int main(int, char** argv) { return endings.at(argv[1])(); }
