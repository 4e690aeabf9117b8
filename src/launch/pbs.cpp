#include "launch/pbs.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

void count_lines(const std::string& content, PbsJob& job) {
  for (const auto& line : text::split(content, '\n')) {
    const auto host = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (host.empty()) continue;
    ++job.slots;
    if (std::find(job.hosts.begin(), job.hosts.end(), host) == job.hosts.end()) job.hosts.push_back(host);
  }
}

// PBS_NP and PBS_NUM_NODES are some versions' own; where they are, they have to fit.
void check_number(const std::optional<std::string>& said, const char* name, std::size_t found, const PbsJob& job) {
  long long value = 0;
  if (!said || said->empty()) return;
  if (text::parse_integer(*said, value) && value == static_cast<long long>(found)) return;
  throw UsageError({.what = text::concat(name, " is ", text::quote(*said), ", but ", job.node_file, " has ", found),
                    .why = "the job's variables contradict each other",
                    .hint = "start from the job's own shell, without variables of another job"});
}

}  // namespace

std::optional<PbsJob> read_pbs(const std::function<std::optional<std::string>(const char* name)>& variables,
                               const std::function<std::optional<std::string>(const std::string& file)>& read) {
  const auto id = variables("PBS_JOBID");
  const auto file = variables("PBS_NODEFILE");
  if (!file || file->empty()) {
    if (!id || variables("PBS_ENVIRONMENT") == "PBS_INTERACTIVE") return std::nullopt;
    throw UsageError({.what = "PBS_JOBID is set, but PBS_NODEFILE is not",
                      .why = "without it nobody knows the job's nodes",
                      .hint = "start within the job's script; outside of jobs unset PBS_JOBID"});
  }
  const auto content = read(*file);
  if (!content) {
    throw UsageError({.what = "PBS_NODEFILE names " + text::quote(*file) + ", which cannot be read",
                      .hint = "start on the job's first node; outside of jobs unset PBS_NODEFILE"});
  }
  PbsJob job{.id = id.value_or(""), .node_file = *file};
  count_lines(*content, job);
  if (job.slots == 0)
    throw UsageError({.what = text::quote(*file) + " names no host", .why = "PBS_NODEFILE is that file"});
  check_number(variables("PBS_NUM_NODES"), "PBS_NUM_NODES", job.hosts.size(), job);
  check_number(variables("PBS_NP"), "PBS_NP", static_cast<std::size_t>(job.slots), job);
  return job;
}

}  // namespace hortator::launching
