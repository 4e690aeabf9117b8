#include "launch/profiler.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::launching;
using Words = std::vector<std::string>;

TEST_CASE("each rank runs under the profiler, with a file of its own") {
  const LaunchRequest request{.program = "./train", .arguments = {"--lr", "a b"}};
  const auto perf = profiled(request, "perf", "/runs/t/profile", {.mpi = MpiFlavor::open_mpi});
  CHECK(perf.program == "sh");
  CHECK(perf.arguments ==
        Words{"-c", "exec perf record --call-graph=fp --output=\"$0/rank_$OMPI_COMM_WORLD_RANK.data\" -- \"$@\"",
              "/runs/t/profile", "./train", "--lr", "a b"});
  const auto nsys = profiled(request, "nsys", "/p", {.in_slurm = true, .srun_mpi = "pmix"});
  CHECK(nsys.arguments[1].find("exec nsys profile ") == 0);
  CHECK(nsys.arguments[1].find("--output=\"$0/rank_$SLURM_PROCID\"") != std::string::npos);
}

TEST_CASE("a profiler needs a launcher that gives the rank in a variable") {
  const auto variable = [](const LaunchEnvironment& environment) {
    const auto line = profiled({.program = "t"}, "perf", "/p", environment).arguments[1];
    const auto begin = line.find("rank_$") + 6;
    return line.substr(begin, line.find('.', begin) - begin);
  };
  CHECK(variable({.mpi = MpiFlavor::mpich}) == "PMI_RANK");
  CHECK(variable({.mpi = MpiFlavor::pals}) == "PALS_RANKID");
  CHECK(variable({.in_flux = true, .mpi = MpiFlavor::open_mpi}) == "FLUX_TASK_RANK");
  CHECK_THROWS_WITH(variable({.mpi = MpiFlavor::other}), ContainsSubstring("--profile is not known to work"));
  CHECK_THROWS_WITH(profiled({.bcast = true, .program = "t"}, "perf", "/p", {.mpi = MpiFlavor::mpich}),
                    ContainsSubstring("does not work with --bcast"));
}
