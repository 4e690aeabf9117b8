#include "launch/command.hpp"

#include "launch/quote.hpp"
#include "support/catch.hpp"

using namespace hortator::launch;

namespace {

std::string line(int ranks, const Facts& facts) {
  const Request request = {.ranks = ranks, .program = "./train", .arguments = {"--lr", "1e-3"}};
  return shell_line(command_line(request, facts));
}

constexpr auto open_mpi = MpiFlavor::open_mpi;

}  // namespace

TEST_CASE("on one machine Open MPI gives each rank as many cores of its own as go round") {
  struct Row {
    int ranks;
    Facts facts;
    std::string expected;
  };
  const std::vector<Row> table = {
      {1, {.mpi = open_mpi, .cores = 8}, "mpirun -n 1 --bind-to none ./train --lr 1e-3"},
      {2, {.mpi = open_mpi, .cores = 8}, "mpirun -n 2 --map-by slot:PE=4 --bind-to core ./train --lr 1e-3"},
      {3, {.mpi = open_mpi, .cores = 8}, "mpirun -n 3 --map-by slot:PE=2 --bind-to core ./train --lr 1e-3"},
      {8, {.mpi = open_mpi, .cores = 8}, "mpirun -n 8 --map-by slot:PE=1 --bind-to core ./train --lr 1e-3"},
      {9, {.mpi = open_mpi, .cores = 8}, "mpirun -n 9 --map-by :OVERSUBSCRIBE --bind-to none ./train --lr 1e-3"},
      {1, {.mpi = open_mpi, .cores = 1}, "mpirun -n 1 --bind-to none ./train --lr 1e-3"},
      {2, {.mpi = open_mpi, .cores = 1}, "mpirun -n 2 --map-by :OVERSUBSCRIBE --bind-to none ./train --lr 1e-3"},
  };
  for (const auto& row : table) CHECK(line(row.ranks, row.facts) == row.expected);
}

TEST_CASE("cores that the user chose with taskset stay his choice") {
  CHECK(line(2, {.mpi = open_mpi, .cores = 4, .is_confined = true}) == "mpirun -n 2 --bind-to none ./train --lr 1e-3");
  CHECK(line(5, {.mpi = open_mpi, .cores = 4, .is_confined = true}) ==
        "mpirun -n 5 --map-by :OVERSUBSCRIBE --bind-to none ./train --lr 1e-3");
}

TEST_CASE("root is allowed for where Open MPI would refuse") {
  CHECK(line(1, {.is_root = true, .mpi = open_mpi}) ==
        "mpirun -n 1 --allow-run-as-root --bind-to none ./train --lr 1e-3");
  CHECK(line(2, {.is_root = true, .mpi = MpiFlavor::mpich}) == "mpirun -n 2 ./train --lr 1e-3");
  CHECK(line(2, {.is_root = true, .mpi = MpiFlavor::other}) == "mpirun -n 2 ./train --lr 1e-3");
}

TEST_CASE("in a batch job of PBS or LSF the scheduler's slots decide, not this node's cores") {
  CHECK(line(512, {.in_other_batch_job = true, .mpi = open_mpi, .cores = 8}) == "mpirun -n 512 ./train --lr 1e-3");
}

TEST_CASE("in a Slurm allocation srun starts the ranks, whatever MPI it is and whoever asks") {
  for (const auto mpi : {open_mpi, MpiFlavor::mpich, MpiFlavor::other}) {
    for (const bool is_root : {false, true}) {
      const Facts facts = {.in_slurm = true, .is_root = is_root, .mpi = mpi, .cores = 2};
      CHECK(line(64, facts) == "srun --mpi=pmix --kill-on-bad-exit=1 -n 64 ./train --lr 1e-3");
    }
  }
  CHECK(line(64, {.in_slurm = true, .cpus_per_task = 6}) ==
        "srun --mpi=pmix --kill-on-bad-exit=1 -n 64 --cpus-per-task=6 ./train --lr 1e-3");
}

TEST_CASE("the program's own options stay behind it, untouched") {
  const auto words = command_line({.ranks = 2, .program = "a b", .arguments = {"-n", "7", ""}}, {});
  CHECK(words == std::vector<std::string>{"mpirun", "-n", "2", "a b", "-n", "7", ""});
}

TEST_CASE("an mpirun is known by what it says of itself") {
  CHECK(mpi_flavor("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/") == open_mpi);
  CHECK(mpi_flavor("mpirun (Open MPI) 5.0.7") == open_mpi);
  CHECK(mpi_flavor("prterun (PRRTE) 3.0.8") == open_mpi);
  CHECK(mpi_flavor("HYDRA build details:\n    Version: 4.0.2") == MpiFlavor::mpich);
  CHECK(mpi_flavor("Intel(R) MPI Library for Linux* OS, Version 2021.9") == MpiFlavor::other);
  CHECK(mpi_flavor("") == MpiFlavor::other);
}

TEST_CASE("variables reach all ranks through every launcher") {
  const Request request = {.ranks = 2, .program = "./train", .variables = {"HORTATOR_DEBUG=1"}};
  CHECK(shell_line(command_line(request, {})) == "mpirun -n 2 env HORTATOR_DEBUG=1 ./train");
  CHECK(shell_line(command_line(request, {.in_slurm = true})) ==
        "srun --mpi=pmix --kill-on-bad-exit=1 -n 2 env HORTATOR_DEBUG=1 ./train");
}
