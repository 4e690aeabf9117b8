#include "launch/settings/synonyms.hpp"

#include <algorithm>
#include <array>

namespace hortator::launching {
namespace {

// clang-format off
constexpr auto known_synonyms = std::to_array<Synonym>({
    // Slurm
    {"-p", "queue"},                {"--partition", "queue"},
    {"-A", "account"},
    {"-N", "num_machines"},
    {"--ntasks", "num_processes"},
    {"--ntasks-per-node", "ranks_per_node"},
    {"-c", "num_cpu_threads_per_process"}, {"--cpus-per-task", "num_cpu_threads_per_process"},
    {"-t", "time"},
    {"-J", "job_name"},             {"--job-name", "job_name"},
    {"-C", "constraint"},
    {"-L", "licenses"},
    {"--mail-user", "mail"},
    {"-a", "", "--array="},         {"--array", "", "--array="},
    {"-d", "", "--dependency="},    {"--dependency", "", "--dependency="},
    {"-w", "", "--nodelist="},      {"--nodelist", "", "--nodelist="},
    {"-x", "", "--exclude="},       {"--exclude", "", "--exclude="},
    {"--mem", "", "--mem="},        {"--mem-per-cpu", "", "--mem-per-cpu="},
    {"--gres", "", "--gres="},
    {"--begin", "", "--begin="},
    {"--comment", "", "--comment="},
    {"--mail-type", "", "--mail-type="},
    {"--exclusive", "", "--exclusive"},
    // mpirun
    {"-np", "num_processes"},       {"--np", "num_processes"},
    {"-ppn", "ranks_per_node"},     {"--ppn", "ranks_per_node"},
    {"-npernode", "ranks_per_node"}, {"--npernode", "ranks_per_node"},
    {"-hostfile", "hostfile"},
    {"-machinefile", "hostfile"},   {"--machinefile", "hostfile"},
});
// clang-format on

const Synonym* find_exact(std::string_view spelling) {
  const auto found = std::find_if(known_synonyms.begin(), known_synonyms.end(),
                                  [&](const Synonym& synonym) { return synonym.spelling == spelling; });
  return found != known_synonyms.end() ? &*found : nullptr;
}

}  // namespace

std::span<const Synonym> synonyms() { return known_synonyms; }

const Synonym* find_synonym(std::string_view argument) {
  const auto* whole = find_exact(argument.substr(0, argument.find('=')));
  if (whole != nullptr || argument.starts_with("--")) return whole;
  return find_exact(argument.substr(0, 2));
}

}  // namespace hortator::launching
