#include "tools/launch/ranks_run.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/signal_name.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "launch/restarts/keeping.hpp"
#include "launch/restarts/spare_hosts.hpp"
#include "runtime/ending/deadline.hpp"
#include "tools/keepers/keepers.hpp"
#include "tools/launch/attempts.hpp"
#include "tools/launch/checkpoint_command.hpp"
#include "tools/launch/held_signals.hpp"
#include "tools/launch/keeper_plan.hpp"
#include "tools/launch/killed_rank.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/supervise.hpp"

namespace hortator::tools {
namespace {

// Schedulers kill a job about 30 s after they have sent SIGTERM.
constexpr std::chrono::seconds time_to_save(25);

// A file into which the program writes what only it knows: the name of its run folder, whether it stops when asked, and
// whether it has stopped. Removed at the end.
class RunNote {
 public:
  RunNote() : file_(std::filesystem::absolute(text::concat(".hortator-run-", getpid()))) {
    remove();  // that of a killed launch with the same number, as in containers
  }
  ~RunNote() { remove(); }
  RunNote(const RunNote&) = delete;
  RunNote& operator=(const RunNote&) = delete;

  std::string variable() const { return "HORTATOR_RUN_NOTE=" + file_.string(); }
  std::filesystem::path folder() const { return line(0); }
  bool has_begun() const { return !line(0).empty(); }
  bool stops_when_asked() const { return !line(1).empty(); }
  bool has_stopped() const { return !line(2).empty(); }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  std::string line(int number) const {
    std::ifstream in(file_);
    std::string text;
    for (int i = 0; i <= number; ++i) {
      if (!std::getline(in, text)) return "";
    }
    return text;
  }

  std::filesystem::path file_;
};

// What was known when a run began.
struct Start {
  std::filesystem::file_time_type of_files = std::filesystem::file_time_type::clock::now();
  double time = core::unix_time();
  std::optional<OomKills> oom_kills = count_oom_kills();
};

// Says how the run has ended if its ranks could not: a rank was killed. Open MPI's reports about a stop or an error
// that the ranks have reported themselves look like a second failure and are left out; all others are passed on.
void explain_end(const launching::LauncherOutput& output, const std::filesystem::path& folder, const Start& start,
                 bool was_signalled) {
  const auto killed = output.killed_rank();
  const bool is_explained = output.has_failure_line() || (!folder.empty() && has_record(folder, start.of_files));
  if ((output.reports().empty() && !killed) || is_explained) return;
  if (!killed || was_signalled) {
    for (const auto& report : output.reports()) std::cerr << report;
    return;
  }
  report_killed_rank({.killed = *killed,
                      .status = folder.empty() ? std::nullopt : last_status(folder, killed->rank, start.time),
                      .now = core::unix_time(),
                      .oom_before = start.oom_kills,
                      .oom_now = count_oom_kills()},
                     folder);
}

// In a user's own script, only this notifies the ranks when the job ends, so that they stop in time.
void pass_deadline(launching::LaunchRequest& request) {
  const auto variables = core::process_variables();
  if (runtime::known_deadline(variables)) return;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto deadline = runtime::ask_deadline(variables, runtime::ask_shell(), now);
  if (deadline) request.variables.push_back(text::concat("HORTATOR_DEADLINE=", deadline->time_since_epoch().count()));
}

std::string joined_reports(const launching::LauncherOutput& output) { return text::join(output.reports(), ""); }

bool is_by_srun(const launching::LaunchEnvironment& facts) { return facts.in_slurm && facts.srun_mpi; }

// srun has its own handling of Ctrl-C.
AttemptEnd run_once(launching::LaunchRequest request, const launching::LaunchEnvironment& facts,
                    CheckpointCommand* on_checkpoint) {
  const RunNote note;
  const bool by_srun = is_by_srun(facts);
  request.variables.push_back(note.variable());
  if (!by_srun) request.variables.emplace_back("HORTATOR_STOPPED_CODE=0");
  const Start start;
  launching::LauncherOutput output;
  Supervision supervision{.has_begun = [&] { return note.has_begun(); }, .output = &output};
  if (on_checkpoint != nullptr) supervision.meanwhile = [on_checkpoint] { on_checkpoint->advance(); };
  if (!by_srun) {
    supervision.grace = time_to_save;
    supervision.stops_when_asked = [&] { return note.stops_when_asked(); };
    supervision.has_failed = [&] { return note.has_begun() && has_failure(note.folder(), start.of_files); };
  }
  auto end = supervise(launching::command_line(request, facts), std::move(supervision));
  if (end.code == 0 && note.has_stopped()) end.code = stopped_code;
  const auto folder = note.folder();
  if (!folder.empty()) end.code = recorded_code(folder, start.of_files, end.code);
  explain_end(output, folder, start, end.was_signalled);
  return {.end = end, .began = start.time, .folder = folder, .report = joined_reports(output)};
}

// The hosts that the ranks may run on now; none on this machine only, and where Slurm does not answer.
launching::HostSupply hosts_now(const launching::LaunchRequest& request, const launching::LaunchEnvironment& facts) {
  std::vector<std::string> at_hand;
  if (facts.in_slurm) {
    at_hand = remaining_nodes();
  } else if (!request.hostfile.empty()) {
    at_hand = launching::entries_of_file(core::read_whole(request.hostfile).value_or(""));
  } else {
    at_hand = hosts_at_hand();
  }
  auto supply = launching::supply_of(request, at_hand);
  supply.drops_lost_hosts = facts.in_slurm && request.hosts.empty();
  return supply;
}

// If Slurm has lost nodes, continues on the remaining ones with proportionally fewer ranks.
void drop_lost_nodes(launching::LaunchRequest& request, const launching::LaunchEnvironment& facts) {
  if (!is_by_srun(facts) || !request.nodes || !request.ranks_per_node) return;
  const auto remaining = static_cast<int>(hosts_now(request, facts).hosts.size());
  if (remaining == 0 || remaining >= *request.nodes) return;
  request.nodes = remaining;
  request.ranks = remaining * *request.ranks_per_node;
  std::cerr << "hortator: continuing on " << text::count(remaining, "node") << " with "
            << text::count(request.ranks, "rank") << "\n";
}

// Starts without the hosts that were judged, and says of the others why they stay.
void leave_out(launching::LaunchRequest& request, const launching::LaunchEnvironment& facts,
               const std::vector<launching::JudgedHost>& judged) {
  for (const auto& host : judged) {
    if (!host.is_left_out()) {
      std::cerr << "hortator: the host " << host.name << ' ' << host.reason << " and stays: " << host.kept_for << "\n";
      continue;
    }
    request = launching::without_host(request, hosts_now(request, facts), host.name, is_by_srun(facts));
    std::cerr << "hortator: the host " << host.name << ' ' << host.reason << " and is left out: continuing with "
              << text::count(request.ranks, "rank") << " on " << text::join(hosts_now(request, facts).hosts, ",")
              << "\n";
  }
}

// Hosts that cannot be reached, as far as the launch still has them.
void leave_out_lost(launching::LaunchRequest& request, const launching::LaunchEnvironment& facts,
                    const std::vector<std::string>& hosts) {
  for (const auto& host : hosts) {
    leave_out(request, facts,
              launching::judge_hosts({{{.host = host, .sign = launching::HostSign::lost}}}, hosts_now(request, facts)));
  }
}

// A run that has finished or stopped on purpose has not failed.
bool has_failed(const LauncherEnd& end) { return end.code != 0 && end.code != stopped_code; }

// A signal has come between two attempts. The run can be resumed, as after a stop on purpose.
int code_of_stop(int signal) {
  std::cerr << "hortator: signal " << signal << " (" << core::signal_name(signal)
            << ") came between two attempts, and ends the launch: there is nothing to save" << std::endl;
  return signal == SIGUSR1 ? stopped_code : 128 + signal;
}

// Without a request of the launch, the program may still ask for checkpoints in memory: it then reports that no keeper
// has made a folder for them.
std::unique_ptr<Keepers> start_keepers(launching::LaunchRequest& request, const launching::LaunchEnvironment& facts,
                                       const MemorySettings& memory) {
  auto plan = plan_keepers(request, facts, memory.parent);
  const bool is_here = plan.commands.size() == 1 && plan.commands.front().where == "this machine";
  if (!memory.is_asked_for && (!is_here || access(memory.parent.c_str(), W_OK) != 0)) return nullptr;
  try {
    const auto folder = plan.folder.string();
    auto keepers = std::make_unique<Keepers>(std::move(plan));
    request.variables.push_back("HORTATOR_KEPT_MEMORY=" + folder);
    return keepers;
  } catch (const Error&) {
    if (memory.is_asked_for) throw;
    return nullptr;
  }
}

int run_attempts(launching::LaunchRequest request, const launching::LaunchEnvironment& facts,
                 const RestartLimits& restarts, const MemorySettings& memory, CheckpointCommand* on_checkpoint) {
  const auto keepers = restarts.in_total > 0 ? start_keepers(request, facts, memory) : nullptr;
  Attempts attempts(restarts);
  const HeldSignals signals;
  while (true) {
    auto attempt = run_once(request, facts, on_checkpoint);
    if (!has_failed(attempt.end)) return attempt.end.code;
    if (keepers) attempt.memory_checkpoint = keepers->newest_checkpoint();
    const auto plan = attempts.judge(attempt, hosts_now(request, facts));
    if (!plan.restarts) return attempt.end.code;
    if (const auto signal = signals.wait(plan.delay)) return code_of_stop(*signal);
    drop_lost_nodes(request, facts);
    leave_out(request, facts, attempts.judged_hosts());
    if (keepers) {
      std::optional<int> signal;
      const auto is_asked_to_stop = [&] { return (signal = signal ? signal : signals.wait(0)).has_value(); };
      leave_out_lost(request, facts, keepers->renew(is_asked_to_stop));
      if (signal) return code_of_stop(*signal);
    }
    if (const auto signal = signals.wait(0)) return code_of_stop(*signal);
  }
}

}  // namespace

int run_ranks(launching::LaunchRequest request, const launching::LaunchEnvironment& facts,
              const RestartLimits& restarts, const MemorySettings& memory,
              const std::vector<std::string>& on_checkpoint) {
  if (!request.log_dir.empty()) std::filesystem::create_directories(request.log_dir);
  pass_deadline(request);
  if (on_checkpoint.empty()) return run_attempts(std::move(request), facts, restarts, memory, nullptr);
  CheckpointCommand command(on_checkpoint);
  request.variables.push_back(command.variable());
  const int code = run_attempts(std::move(request), facts, restarts, memory, &command);
  command.finish();
  return code;
}

}  // namespace hortator::tools
