#include "tools/job/node_facts.hpp"

#include <iostream>

#include "core/text/text.hpp"
#include "launch/job/node_facts.hpp"
#include "launch/job/quote.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

std::vector<launching::NodeFacts> ask_slurm(const launching::Settings& settings) {
  if (!find_program("sinfo")) return {};
  std::string command = "sinfo -h -e -o '%c|%G'";
  if (const auto queue = settings.word("queue")) command += " -p " + launching::shell_quote(*queue);
  const auto answer = run_command(command + " 2>/dev/null");
  return answer.code == 0 ? launching::parse_sinfo(answer.output) : std::vector<launching::NodeFacts>{};
}

std::vector<launching::NodeFacts> ask_pbs() {
  if (!find_program("pbsnodes")) return {};
  const auto answer = run_command("pbsnodes -a 2>/dev/null");
  return answer.code == 0 ? launching::parse_pbsnodes(answer.output) : std::vector<launching::NodeFacts>{};
}

}  // namespace

void complete_cpus(launching::Job& job) {
  if (job.request.threads || job.cpus_per_node) return;
  const bool is_slurm = job.scheduler == launching::Scheduler::slurm;
  const auto nodes = is_slurm ? ask_slurm(job.settings) : ask_pbs();
  job.cpus_per_node =
      launching::cpus_of_any(nodes, {.count = job.request.gpus_per_node.value_or(0), .types = job.request.gpu_types});
  job.cpus_source = is_slurm ? "sinfo" : "pbsnodes";
  if (job.cpus_per_node) return;
  std::cerr << "hortator: warning: the job asks for one CPU per rank, since " << job.cpus_source
            << " reports no node that it could get; use --threads N or --cpus-per-node N\n";
}

}  // namespace hortator::tools
