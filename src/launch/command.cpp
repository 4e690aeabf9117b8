#include "launch/command.hpp"

namespace hortator::launch {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// One rank that is killed must not leave the others waiting for it until the job's time is over.
Words srun(int ranks, const Facts& facts) {
  Words words = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", std::to_string(ranks)};
  if (facts.cpus_per_task) words.push_back("--cpus-per-task=" + std::to_string(*facts.cpus_per_task));
  return words;
}

// By default Open MPI gives each of two ranks one core, whatever there is, and lets more than two share a socket.
// ":OVERSUBSCRIBE" is understood by Open MPI 4 and 5; --oversubscribe is on its way out.
Words open_mpi_placement(int ranks, const Facts& facts) {
  if (facts.in_other_batch_job) return {};
  if (ranks > facts.cores) return {"--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"};
  if (ranks == 1 || facts.is_confined) return {"--bind-to", "none"};
  return {"--map-by", "slot:PE=" + std::to_string(facts.cores / ranks), "--bind-to", "core"};
}

Words mpirun(int ranks, const Facts& facts) {
  Words words = {"mpirun", "-n", std::to_string(ranks)};
  if (facts.mpi != MpiFlavor::open_mpi) return words;
  if (facts.is_root) words.emplace_back("--allow-run-as-root");
  append(words, open_mpi_placement(ranks, facts));
  return words;
}

}  // namespace

std::vector<std::string> command_line(const Request& request, const Facts& facts) {
  Words words = facts.in_slurm ? srun(request.ranks, facts) : mpirun(request.ranks, facts);
  // Every launcher has a way of its own to pass variables on; env works with all of them.
  if (!request.variables.empty()) append(words, {"env"});
  append(words, request.variables);
  words.push_back(request.program);
  append(words, request.arguments);
  return words;
}

}  // namespace hortator::launch
