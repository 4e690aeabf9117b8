#include "launch/pbs.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

void count_lines(const std::string& content, PbsJob& job) {
  std::map<std::string, int> slots;
  for (const auto& line : text::split(content, '\n')) {
    const auto host = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (host.empty()) continue;
    ++job.slots;
    ++slots[host];
    if (std::find(job.hosts.begin(), job.hosts.end(), host) == job.hosts.end()) job.hosts.push_back(host);
  }
  const auto has_as_many = [&](const auto& host) { return host.second == slots.begin()->second; };
  if (!slots.empty() && std::ranges::all_of(slots, has_as_many)) job.slots_of_host = slots.begin()->second;
}

// Only some versions of PBS set PBS_NP and PBS_NUM_NODES; if they are set, they must match the file.
void check_number(const std::optional<std::string>& given, const char* name, std::size_t found, const PbsJob& job) {
  long long value = 0;
  if (!given || given->empty()) return;
  if (text::parse_integer(*given, value) && value == static_cast<long long>(found)) return;
  throw UsageError({.what = text::concat(name, " is ", text::quote(*given), ", but ", job.node_file, " has ", found),
                    .why = "the job's variables contradict each other",
                    .hint = "start from the job's own shell, without the variables of another job"});
}

// PBS sets NCPUS to the CPUs of a chunk, or to the threads of a rank where ompthreads gives them.
std::optional<int> number_of_cpus(const std::function<std::optional<std::string>(const char* name)>& variables) {
  const auto cpus = variables("NCPUS");
  long long count = 0;
  if (!cpus || !text::parse_integer(*cpus, count) || count < 1) return {};
  return static_cast<int>(count);
}

}  // namespace

std::optional<PbsJob> read_pbs(const std::function<std::optional<std::string>(const char* name)>& variables,
                               const std::function<std::optional<std::string>(const std::string& file)>& read) {
  const auto id = variables("PBS_JOBID");
  const auto file = variables("PBS_NODEFILE");
  if (!file || file->empty()) {
    if (!id || variables("PBS_ENVIRONMENT") == "PBS_INTERACTIVE") return std::nullopt;
    throw UsageError({.what = "PBS_JOBID is set, but PBS_NODEFILE is not",
                      .why = "without it the job's nodes are unknown",
                      .hint = "start from the job's script; outside of a job, unset PBS_JOBID"});
  }
  const auto content = read(*file);
  if (!content) {
    throw UsageError({.what = "PBS_NODEFILE names " + text::quote(*file) + ", which cannot be read",
                      .hint = "start on the job's first node; outside of a job, unset PBS_NODEFILE"});
  }
  PbsJob job{.id = id.value_or(""), .node_file = *file};
  count_lines(*content, job);
  if (job.slots == 0) throw UsageError({.what = "PBS_NODEFILE: the file " + text::quote(*file) + " names no host"});
  check_number(variables("PBS_NUM_NODES"), "PBS_NUM_NODES", job.hosts.size(), job);
  check_number(variables("PBS_NP"), "PBS_NP", static_cast<std::size_t>(job.slots), job);
  const auto hosts = static_cast<int>(job.hosts.size());
  if (const auto cpus = number_of_cpus(variables)) {
    // The same number in both: PBS has set the number of threads, not the user.
    if (variables("OMP_NUM_THREADS") == variables("NCPUS")) job.cpus = *cpus * hosts;
    job.cpus_of_host = std::max(*cpus, job.slots / hosts);
  }
  return job;
}

}  // namespace hortator::launching
