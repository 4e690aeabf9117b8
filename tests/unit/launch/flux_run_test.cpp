#include "launch/flux_run.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::launching;

namespace {

std::string flux_command(LaunchRequest request, MpiFlavor mpi = MpiFlavor::open_mpi) {
  request.program = "./train";
  return text::join(command_line(request, {.in_flux = true, .in_other_batch_job = true, .mpi = mpi}), " ");
}

}  // namespace

TEST_CASE("in an instance of Flux, flux run starts the ranks") {
  CHECK(flux_command({.ranks = 4}) == "flux run --setopt=pmi=pmix --ntasks=4 ./train");
  CHECK(flux_command({.ranks = 4, .threads = 2}, MpiFlavor::mpich) ==
        "flux run --ntasks=4 --cores-per-task=2 --setopt=cpu-affinity=per-task ./train");
  CHECK(flux_command(
            {.ranks = 8, .nodes = 2, .ranks_per_node = 4, .gpus_per_node = 4, .threads = 3, .prefix_output = true}) ==
        "flux run --setopt=pmi=pmix --nodes=2 --tasks-per-node=4 --cores=24 --gpus-per-node=4 "
        "--setopt=cpu-affinity=per-task --label-io ./train");
  CHECK(flux_command({.ranks = 2,
                      .hosts = "n1,n2",
                      .cpu_bind = "none",
                      .launcher_options = {"--urgency=1  -vv"},
                      .variables = {"A=b c"}}) ==
        "flux run --setopt=pmi=pmix --ntasks=2 --requires=host:n1,n2 --setopt=cpu-affinity=off --urgency=1 -vv "
        "env A=b c ./train");
}

TEST_CASE("what flux run cannot do is refused") {
  CHECK_THROWS_WITH(flux_command({.map_by = "node"}), ContainsSubstring("--map-by does not work with flux run"));
  CHECK_THROWS_WITH(flux_command({.bcast = true}), ContainsSubstring("--bcast does not work"));
  CHECK_THROWS_WITH(flux_command({.hostfile = "h"}), ContainsSubstring("--hostfile does not work"));
  CHECK_THROWS_WITH(flux_command({.log_dir = "logs"}), ContainsSubstring("--log-dir does not work"));
  CHECK_THROWS_WITH(flux_command({.cpu_bind = "socket"}), ContainsSubstring("flux run has none and core"));
  CHECK_THROWS_WITH(flux_command({.ranks = 2, .gpus_per_node = 1}),
                    ContainsSubstring("needs --nodes and --ranks-per-node"));
}
