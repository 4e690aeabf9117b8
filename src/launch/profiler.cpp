#include "launch/profiler.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

/// The variable in which the launcher gives a process its rank.
std::string_view rank_variable(const LaunchEnvironment& environment) {
  if (environment.in_slurm && environment.srun_mpi) return "SLURM_PROCID";
  if (environment.in_flux) return "FLUX_TASK_RANK";
  switch (environment.mpi) {
    case MpiFlavor::open_mpi:
      return "OMPI_COMM_WORLD_RANK";
    case MpiFlavor::mpich:
      return "PMI_RANK";
    case MpiFlavor::pals:
      return "PALS_RANKID";
    case MpiFlavor::other:
      break;
  }
  throw UsageError({.what = text::concat("--profile is not known to work with ", environment.mpirun),
                    .why = "it names each rank's file by a variable of the launcher",
                    .hint = "start the profiler in the command of the launcher"});
}

}  // namespace

LaunchRequest profiled(LaunchRequest request, std::string_view profiler, const std::string& folder,
                       const LaunchEnvironment& environment) {
  if (request.bcast) {
    throw UsageError({.what = "--profile does not work with --bcast",
                      .why = "srun would copy the shell that starts the profiler instead of the program"});
  }
  // "$0" is the folder, "$@" the program with its arguments. Collectives are ranges of NVTX in the traces of nsys.
  const auto rank = text::concat("rank_$", rank_variable(environment));
  const auto line =
      profiler == "nsys"
          ? text::concat("exec nsys profile --trace=cuda,nvtx,osrt,mpi --force-overwrite=true --output=\"$0/", rank,
                         "\" \"$@\"")
          : text::concat("exec perf record --call-graph=fp --output=\"$0/", rank, ".data\" -- \"$@\"");
  std::vector<std::string> arguments = {"-c", line, folder, request.program};
  arguments.insert(arguments.end(), request.arguments.begin(), request.arguments.end());
  request.program = "sh";
  request.arguments = std::move(arguments);
  return request;
}

}  // namespace hortator::launching
