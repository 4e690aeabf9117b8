#include "launch/command.hpp"

#include <hortator/error.hpp>

#include "launch/job/quote.hpp"
#include "launch/mpirun.hpp"
#include "launch/srun_mpi.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

std::string line(int ranks, const LaunchEnvironment& facts) {
  const LaunchRequest request = {.ranks = ranks, .program = "./train", .arguments = {"--lr", "1e-3"}};
  return shell_line(command_line(request, facts));
}

constexpr auto open_mpi = MpiFlavor::open_mpi;

}  // namespace

TEST_CASE("on one machine Open MPI gives each rank an equal number of its own cores") {
  struct Row {
    int ranks;
    LaunchEnvironment facts;
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

TEST_CASE("cores chosen with taskset are respected") {
  CHECK(line(2, {.mpi = open_mpi, .cores = 4, .is_confined = true}) == "mpirun -n 2 --bind-to none ./train --lr 1e-3");
  CHECK(line(5, {.mpi = open_mpi, .cores = 4, .is_confined = true}) ==
        "mpirun -n 5 --map-by :OVERSUBSCRIBE --bind-to none ./train --lr 1e-3");
}

TEST_CASE("Open MPI gets the option that allows root") {
  CHECK(line(1, {.is_root = true, .mpi = open_mpi}) ==
        "mpirun -n 1 --allow-run-as-root --bind-to none ./train --lr 1e-3");
  CHECK(line(2, {.is_root = true, .mpi = MpiFlavor::mpich}) == "mpirun -n 2 ./train --lr 1e-3");
  CHECK(line(2, {.is_root = true, .mpi = MpiFlavor::other}) == "mpirun -n 2 ./train --lr 1e-3");
}

TEST_CASE("in a batch job of PBS or LSF the scheduler's slots count, not this node's cores") {
  CHECK(line(512, {.in_other_batch_job = true, .mpi = open_mpi, .cores = 8}) == "mpirun -n 512 ./train --lr 1e-3");
}

TEST_CASE("in a Slurm allocation srun starts the ranks, for every MPI and every user") {
  for (const auto mpi : {open_mpi, MpiFlavor::mpich, MpiFlavor::other}) {
    for (const bool is_root : {false, true}) {
      const LaunchEnvironment facts = {.in_slurm = true, .is_root = is_root, .mpi = mpi, .cores = 2};
      CHECK(line(64, facts) == "srun --mpi=pmix --kill-on-bad-exit=1 -n 64 --export=ALL ./train --lr 1e-3");
    }
  }
  CHECK(line(64, {.in_slurm = true, .cpus_per_task = 6}) ==
        "srun --mpi=pmix --kill-on-bad-exit=1 -n 64 --cpus-per-task=6 --export=ALL ./train --lr 1e-3");
}

TEST_CASE("the program's options follow it unchanged") {
  const auto arguments = command_line({.ranks = 2, .program = "a b", .arguments = {"-n", "7", ""}}, {});
  CHECK(arguments == std::vector<std::string>{"mpirun", "-n", "2", "a b", "-n", "7", ""});
}

TEST_CASE("the flavor of an mpirun is read from its version text") {
  CHECK(mpi_flavor("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/") == open_mpi);
  CHECK(mpi_flavor("mpirun (Open MPI) 5.0.7") == open_mpi);
  CHECK(mpi_flavor("prterun (PRRTE) 3.0.8") == open_mpi);
  CHECK(mpi_flavor("HYDRA build details:\n    Version: 4.0.2") == MpiFlavor::mpich);
  CHECK(mpi_flavor("Intel(R) MPI Library for Linux* OS, Version 2021.9") == MpiFlavor::other);
  CHECK(mpi_flavor("") == MpiFlavor::other);
}

TEST_CASE("an mpirun fits its MPI by name and, for Open MPI, by major release") {
  const auto fits = [](std::string_view version_text, std::string_view name, std::string_view version) {
    return fits_mpi(mpirun_of("mpirun", version_text), name, version);
  };
  const auto four = "mpirun (Open MPI) 4.1.4\n\nReport bugs";
  const auto hydra = "HYDRA build details:\n    Version: 4.0.2";
  CHECK(fits(four, "Open MPI", "4.0.1"));
  CHECK(!fits(four, "Open MPI", "5.0.7"));
  CHECK(fits("prterun (PRRTE) 3.0.8", "Open MPI", "5.0.7"));
  CHECK(fits("OpenRTE 4.1", "Open MPI", "5.0.7"));  // its release is unknown
  CHECK(!fits(four, "MPICH", "4.0.2"));
  CHECK(!fits(hydra, "Open MPI", "4.1.4"));
  for (const auto* name : {"MPICH", "Intel MPI", "Cray MPICH", "MVAPICH"}) CHECK(fits(hydra, name, "2021.9"));
  CHECK(fits("PALS 1.2", "Cray MPICH", "8.1"));
  // a site's wrapper, and an MPI without a known name
  CHECK(fits("our mpirun", "Open MPI", "4.1.4"));
  CHECK(fits(hydra, "", ""));
  CHECK((mpirun_of("/opt/bin/mpirun", four) == Mpirun{"/opt/bin/mpirun", open_mpi, 4}));
}

TEST_CASE("the command begins with the mpirun that was found") {
  const std::string own = "/opt/mpi/bin/mpirun";
  CHECK(line(1, {.mpirun = own, .mpi = open_mpi}).starts_with(own + " -n 1 --bind-to none"));
  for (const auto mpi : {MpiFlavor::mpich, MpiFlavor::pals, MpiFlavor::other}) {
    CHECK(line(3, {.mpirun = own, .mpi = mpi}) == own + " -n 3 ./train --lr 1e-3");
  }
}

TEST_CASE("variables reach all ranks through every launcher") {
  const LaunchRequest request = {.ranks = 2, .program = "./train", .variables = {"HORTATOR_DEBUG=1"}};
  CHECK(shell_line(command_line(request, {})) == "mpirun -n 2 env HORTATOR_DEBUG=1 ./train");
  CHECK(shell_line(command_line(request, {.in_slurm = true})) ==
        "srun --mpi=pmix --kill-on-bad-exit=1 -n 2 --export=ALL,HORTATOR_DEBUG=1 ./train");
}

namespace {

std::string in_slurm(LaunchRequest request) {
  request.program = "./train";
  return shell_line(command_line(request, {.in_slurm = true}));
}

std::string with_open_mpi(LaunchRequest request, LaunchEnvironment facts = {}) {
  request.program = "./train";
  facts.mpi = open_mpi;
  return shell_line(command_line(request, facts));
}

}  // namespace

TEST_CASE("each option becomes arguments of srun") {
  const std::string srun = "srun --mpi=pmix --kill-on-bad-exit=1 ";
  CHECK(in_slurm({.ranks = 8, .nodes = 2, .ranks_per_node = 4}) ==
        srun + "-N 2 -n 8 --ntasks-per-node=4 --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .gpus_per_node = 4}) == srun + "-n 2 --gpus-per-node=4 --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .gpus_per_node = 0}) == srun + "-n 2 --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .threads = 3}) == srun + "-n 2 --cpus-per-task=3 --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .prefix_output = true}) == srun + "-n 2 --label --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .log_dir = "a b"}) == srun + "-n 2 '--output=a b/rank_%t.log' --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .bcast = true}) == srun + "-n 2 --bcast=/tmp/train --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .survives_nodes = true}) ==
        "srun --mpi=pmix --kill-on-bad-exit=1 --no-kill=off -n 2 --export=ALL ./train");
  CHECK(in_slurm({.ranks = 2, .nodes = 2, .excluded_hosts = "n2,n5"}) ==
        srun + "-N 2 -n 2 --exclude=n2,n5 --export=ALL ./train");
}

TEST_CASE("requested threads override the allocation's CPUs per task") {
  const LaunchRequest request = {.ranks = 2, .threads = 3, .program = "./train"};
  const auto line = shell_line(command_line(request, {.in_slurm = true, .cpus_per_task = 8}));
  CHECK_THAT(line, ContainsSubstring("--cpus-per-task=3"));
  CHECK_THAT(line, !ContainsSubstring("--cpus-per-task=8"));
}

TEST_CASE("variables that srun would split are passed by env, and refused with --bcast") {
  for (const std::string value : {"A=0,1", "A=a b", "A='", "A=\"", "A=a\nb"}) {
    const auto arguments = command_line({.variables = {value}}, {.in_slurm = true});
    CHECK(arguments[arguments.size() - 2] == value);
    CHECK(arguments[arguments.size() - 3] == "env");
    CHECK_THROWS_AS(command_line({.bcast = true, .variables = {value}}, {.in_slurm = true}), hortator::UsageError);
  }
}

TEST_CASE("if srun does not support this MPI, mpirun starts the ranks in the allocation") {
  LaunchEnvironment facts = {.in_slurm = true};
  facts.srun_mpi.reset();
  CHECK(with_open_mpi({.ranks = 8, .nodes = 2, .ranks_per_node = 4}, facts) ==
        "mpirun -n 8 --map-by ppr:4:node ./train");
}

TEST_CASE("Open MPI passes Hortator's variables by name if there may be other hosts") {
  const LaunchEnvironment facts = {.own_variables = {"HORTATOR_A", "HORTATOR_B"}};
  CHECK(with_open_mpi({.ranks = 2, .hostfile = "hosts", .variables = {"HORTATOR_B=1"}}, facts) ==
        "mpirun -n 2 --hostfile hosts -x HORTATOR_A -x HORTATOR_B env HORTATOR_B=1 ./train");
  CHECK_THAT(with_open_mpi({.ranks = 2}, facts), !ContainsSubstring("-x"));
  auto in_job = facts;
  in_job.in_other_batch_job = true;
  CHECK(with_open_mpi({.ranks = 2}, in_job) == "mpirun -n 2 -x HORTATOR_A -x HORTATOR_B ./train");
}

TEST_CASE("each option becomes arguments of Open MPI 4 and 5") {
  const std::string four = "mpirun -n 2 ";
  const std::string five = "mpirun -n 2 ";
  const LaunchEnvironment new_one = {.mpi_major = 5};
  CHECK(with_open_mpi({.ranks = 2, .prefix_output = true}, {.cores = 1}) ==
        four + "--map-by :OVERSUBSCRIBE --bind-to none --tag-output ./train");
  CHECK(with_open_mpi({.ranks = 2, .prefix_output = true}, new_one) ==
        five + "--map-by :OVERSUBSCRIBE --bind-to none --output tag ./train");
  CHECK_THAT(with_open_mpi({.ranks = 2, .log_dir = "l"}), ContainsSubstring(" --output-filename l "));
  CHECK_THAT(with_open_mpi({.ranks = 2, .prefix_output = true, .log_dir = "l"}, new_one),
             ContainsSubstring(" --output tag,dir=l "));
  CHECK(with_open_mpi({.ranks = 4, .ranks_per_node = 2, .threads = 3, .hostfile = "h"}) ==
        "mpirun -n 4 --hostfile h --map-by ppr:2:node:PE=3 ./train");
  CHECK_THAT(with_open_mpi({.ranks = 2, .threads = 1}, {.cores = 8}), ContainsSubstring("slot:PE=1"));
  CHECK_THAT(with_open_mpi({.ranks = 2, .threads = 9}, {.cores = 8}), ContainsSubstring("slot:PE=4"));
}

TEST_CASE("in PBS an Open MPI without tm gets the nodes and PBS's agent") {
  const LaunchEnvironment facts = {
      .in_other_batch_job = true, .node_file = "/var/nodes", .agent = "/data/pbs_agent.sh"};
  CHECK(with_open_mpi({.ranks = 4, .ranks_per_node = 2}, facts) ==
        "mpirun -n 4 --hostfile /var/nodes --mca plm_rsh_agent /data/pbs_agent.sh "
        "--map-by ppr:2:node ./train");
  CHECK_THROWS_WITH(with_open_mpi({}, {.in_other_batch_job = true, .node_file = "/var/nodes"}),
                    ContainsSubstring("no pbs_tmrsh"));
}

TEST_CASE("the CPUs that PBS counts for each rank are divided by the ranks") {
  const LaunchEnvironment facts = {.in_other_batch_job = true, .pbs_cpus = 8};
  CHECK(with_open_mpi({.ranks = 4, .ranks_per_node = 2}, facts) ==
        "mpirun -n 4 --map-by ppr:2:node --bind-to none env OMP_NUM_THREADS=2 ./train");
  CHECK(with_open_mpi({.ranks = 4}, facts) == "mpirun -n 4 --bind-to none env OMP_NUM_THREADS=2 ./train");
  CHECK(with_open_mpi({.ranks = 16}, facts) == "mpirun -n 16 env OMP_NUM_THREADS=1 ./train");
  CHECK(with_open_mpi({.ranks = 4, .ranks_per_node = 2, .threads = 1}, facts) ==
        "mpirun -n 4 --map-by ppr:2:node:PE=1 ./train");
}

TEST_CASE("on a node that the job shares with others, mpirun binds no rank") {
  const LaunchEnvironment facts = {.in_other_batch_job = true, .shares_node = true};
  CHECK(with_open_mpi({.ranks = 2}, facts) == "mpirun -n 2 --bind-to none ./train");
  CHECK(with_open_mpi({.ranks = 4, .ranks_per_node = 2, .threads = 2}, facts) ==
        "mpirun -n 4 --map-by ppr:2:node --bind-to none ./train");
  CHECK(with_open_mpi({.ranks = 2, .cpu_bind = "core"}, facts) == "mpirun -n 2 --bind-to core ./train");
}

TEST_CASE("MPICH and PALS get their own arguments") {
  const LaunchRequest request = {
      .ranks = 8, .ranks_per_node = 4, .threads = 2, .prefix_output = true, .program = "./train"};
  CHECK(shell_line(command_line(request, {.mpi = MpiFlavor::mpich})) == "mpirun -n 8 -ppn 4 -prepend-rank ./train");
  CHECK(shell_line(command_line(request, {.mpirun = "mpiexec", .mpi = MpiFlavor::pals})) ==
        "mpiexec -n 8 -ppn 4 --cpu-bind depth -d 2 --label ./train");
  CHECK(shell_line(command_line({.hostfile = "h", .program = "./train"}, {.mpi = MpiFlavor::pals})) ==
        "mpirun -n 1 --hostfile h ./train");
  CHECK_THROWS_WITH(command_line({.log_dir = "l"}, {.mpi = MpiFlavor::pals}),
                    ContainsSubstring("--log-dir does not work with PALS"));
  CHECK(shell_line(command_line({.log_dir = "l", .hostfile = "h", .program = "./train"}, {.mpi = MpiFlavor::mpich})) ==
        "mpirun -n 1 -f h -outfile-pattern l/rank_%r.log ./train");
}

TEST_CASE("on one machine MPICH gives each rank an equal number of its own cores") {
  const auto mpich = MpiFlavor::mpich;
  CHECK(line(2, {.mpi = mpich, .cores = 8}) == "mpirun -n 2 -bind-to core:4 -map-by core:4 ./train --lr 1e-3");
  CHECK(line(3, {.mpi = mpich, .cores = 8}) == "mpirun -n 3 -bind-to core:2 -map-by core:2 ./train --lr 1e-3");
  CHECK(line(1, {.mpi = mpich, .cores = 8}) == "mpirun -n 1 ./train --lr 1e-3");
  CHECK(line(9, {.mpi = mpich, .cores = 8}) == "mpirun -n 9 ./train --lr 1e-3");
  CHECK(line(2, {.mpi = mpich, .cores = 8, .is_confined = true}) == "mpirun -n 2 ./train --lr 1e-3");
  CHECK(line(2, {.in_other_batch_job = true, .mpi = mpich, .cores = 8}) == "mpirun -n 2 ./train --lr 1e-3");
  CHECK_THROWS_WITH(command_line({.ranks = 4, .nodes = 2}, {.mpi = mpich}),
                    ContainsSubstring("there is only this machine"));
}

TEST_CASE("options that the launcher does not support are refused") {
  CHECK_THROWS_WITH(with_open_mpi({.ranks = 4, .nodes = 2}), ContainsSubstring("there is only this machine"));
  CHECK_THROWS_WITH(with_open_mpi({.bcast = true}), ContainsSubstring("--bcast works only with srun"));
  CHECK_THROWS_WITH(command_line({.log_dir = "l"}, {}), ContainsSubstring("--log-dir is not known"));
  CHECK_THROWS_WITH(command_line({.prefix_output = true}, {}), ContainsSubstring("--prefix-output is not known"));
  CHECK_THROWS_WITH(command_line({.hostfile = "h"}, {}), ContainsSubstring("--hostfile is not known"));
}

TEST_CASE("srun's --mpi is the best one that it lists") {
  const std::string old_list = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\nsrun: pmix\n";
  const std::string new_list =
      "MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n\tpmix\nspecific pmix plugin versions available: "
      "pmix_v4\n";
  CHECK(choose_srun_mpi(old_list, open_mpi) == "pmix");
  CHECK(choose_srun_mpi(old_list, MpiFlavor::mpich) == "pmi2");
  CHECK(choose_srun_mpi(new_list, open_mpi) == "pmix");
  CHECK(choose_srun_mpi(new_list, MpiFlavor::mpich) == "cray_shasta");
  CHECK(choose_srun_mpi("srun: pmix_v3\nsrun: pmix_v4\nsrun: none", open_mpi) == "pmix_v4");
  CHECK(!choose_srun_mpi("srun: none\nsrun: pmi2", open_mpi));
  CHECK(!choose_srun_mpi("srun: none\n", MpiFlavor::mpich));
  CHECK(!choose_srun_mpi("", open_mpi));
}

TEST_CASE("the release of an mpirun is read from its version text") {
  CHECK(mpi_major("mpirun (Open MPI) 4.1.4\n\nReport bugs") == 4);
  CHECK(mpi_major("mpirun (Open MPI) 5.0.7") == 5);
  CHECK(mpi_major("prterun (PRRTE) 3.0.8") == 5);
  CHECK(mpi_major("") == 0);
}
