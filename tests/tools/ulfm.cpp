// Probes fault tolerance in MPI (ULFM): a rank is killed within a loop of all-reduces, and the others shrink the
// communicator and continue. Prints what each way of dying costs. Needs Open MPI 5:
//   mpic++ -O2 tests/tools/ulfm.cpp -o ulfm && mpirun --with-ft ulfm -n 4 ./ulfm DEATH [STEPS]
// DEATH: none (kill one yourself, or a host), between (outside of MPI), within (in the all-reduce, by another thread),
// split (while the others split a communicator), two (a second one while the others recover).
// clang-format off: Open MPI's extensions need mpi.h first
#include <mpi-ext.h>
#include <mpi.h>
// clang-format on
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int death_step = 10;

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

bool is_failure(int code) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_REVOKED;
}

// Agrees with the other ranks that are left on whether all have succeeded.
bool agree(MPI_Comm comm, bool is_good) {
  int flag = is_good ? 1 : 0;
  const int code = MPIX_Comm_agree(comm, &flag);
  return code == MPI_SUCCESS && flag == 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string death = argc > 1 ? argv[1] : "between";
  const int steps = argc > 2 ? std::stoi(argv[2]) : 40;
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int first_rank = 0;
  MPI_Comm_rank(comm, &first_rank);
  std::vector<float> data(1 << 22, 1.0F);
  int deaths = 0;
  for (int step = 0; step < steps;) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const bool dies = death != "none" && step == death_step && deaths == 0 && first_rank == 1;
    if (dies && death == "within") {
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        kill(getpid(), SIGKILL);
      }).detach();
    } else if (dies) {
      kill(getpid(), SIGKILL);
    }
    int code = MPI_SUCCESS;
    if (death == "split" && step == death_step) {
      MPI_Comm part = MPI_COMM_NULL;
      code = MPI_Comm_split(comm, rank % 2, rank, &part);
    }
    if (code == MPI_SUCCESS)
      code = MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_MAX, comm);
    const bool is_good = agree(comm, code == MPI_SUCCESS);
    if (is_good) {
      ++step;
      continue;
    }
    if (code != MPI_SUCCESS && !is_failure(code)) std::printf("rank %d: another error: %d\n", first_rank, code);
    const auto begin = Clock::now();
    ++deaths;
    MPIX_Comm_revoke(comm);
    if (death == "two" && deaths == 1 && first_rank == 2) kill(getpid(), SIGKILL);
    MPI_Comm left = MPI_COMM_NULL;
    const int shrunk = MPIX_Comm_shrink(comm, &left);
    if (shrunk != MPI_SUCCESS) {
      std::printf("rank %d: shrinking failed: %d\n", first_rank, shrunk);
      std::fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    comm = left;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int now = 0;
    MPI_Comm_size(comm, &now);
    std::printf("rank %d: step %d: %d of %d ranks are left, after %.0f ms\n", first_rank, step, now, ranks,
                milliseconds(begin));
    std::fflush(stdout);
  }
  std::printf("rank %d: finished\n", first_rank);
  MPI_Finalize();
}
