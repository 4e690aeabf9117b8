#include "runtime/identity/lock_holder.hpp"

#include <unistd.h>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::runtime {
namespace {

// A program without hortator::run does not name its run. Its ranks share the launcher's name, or a parent on each host.
std::string run_of(const core::Variables& variables) {
  const auto run = current_run().id;
  if (!run.empty()) return run;
  if (const auto name = variables("PMIX_NAMESPACE")) return *name;
  return launcher().kind == Launcher::plain ? "" : text::concat(mpi::host_name(), '/', getppid());
}

}  // namespace

std::string job_of(const core::Variables& variables) {
  if (const auto id = variables("SLURM_JOB_ID")) return "slurm " + *id;
  if (const auto id = variables("PBS_JOBID")) return "pbs " + *id;
  return "";
}

LockHolder lock_holder(const core::Variables& variables) {
  return {.run = run_of(variables),
          .host = mpi::host_name(),
          .pid = getpid(),
          .job = job_of(variables),
          .restarts = core::number(variables, "SLURM_RESTART_COUNT").value_or(0),
          .since = core::utc()};
}

std::string to_json(const LockHolder& holder) {
  nlohmann::ordered_json record = {{"run", holder.run}, {"host", holder.host},         {"pid", holder.pid},
                                   {"job", holder.job}, {"restarts", holder.restarts}, {"since", holder.since}};
  if (!holder.part.empty()) record["part"] = holder.part;
  if (holder.ranks != 0) record["ranks"] = holder.ranks;
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

LockHolder parse_holder(const std::string& json) {
  const auto record = core::parse_record(json);
  const auto text_of = [&](const char* name) {
    return record.is_object() && record.contains(name) && record[name].is_string() ? record[name].get<std::string>()
                                                                                   : "";
  };
  const auto number = [&](const char* name) {
    return record.is_object() && record.contains(name) && record[name].is_number_integer() ? record[name].get<long>()
                                                                                           : 0;
  };
  return {.run = text_of("run"),
          .host = text_of("host"),
          .pid = number("pid"),
          .job = text_of("job"),
          .restarts = static_cast<int>(number("restarts")),
          .since = text_of("since"),
          .part = text_of("part"),
          .ranks = static_cast<int>(number("ranks"))};
}

std::string to_string(const LockHolder& holder) {
  if (holder.pid == 0) return "its lock file does not say which";
  const auto job = holder.job.empty() ? std::string() : ", job " + holder.job;
  return text::concat("pid ", holder.pid, " on ", holder.host, job, ", since ", holder.since);
}

bool is_superseded(const LockHolder& before, const LockHolder& now) {
  return !now.job.empty() && before.job == now.job && before.restarts < now.restarts;
}

}  // namespace hortator::runtime
