#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "launch/job/quote.hpp"
#include "launch/request.hpp"
#include "launch/waiting.hpp"
#include "runtime/ending/deadline.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/launch/killed_rank.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/supervise.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

constexpr int stopped_code = 75;
constexpr int usage_code = 2;
// Schedulers kill a job about 30 s after they have sent SIGTERM.
constexpr std::chrono::seconds time_to_save(25);

Options launch_options() {
  Options options;
  options.ends_at_text = true;
  add_setting_flags(options, launching::Scope::launch);
  options.named.add_options()("dry-run", "print the command and exit")("json", "print the command as JSON and exit")(
      "help,h", "print this help");
  return options;
}

void print_launch_help() {
  std::cout
      << "usage: hortator launch -n N [options] PROGRAM [ARGUMENTS]\n\n"
         "Starts PROGRAM on N ranks: with srun inside a Slurm allocation, otherwise with the mpirun of the MPI that\n"
         "Hortator was built with. Everything after PROGRAM is passed to PROGRAM. SIGUSR1 and SIGTERM are forwarded\n"
         "to the ranks. Ctrl-C asks a program that checks should_stop() to save and stop; a second one ends it at\n"
         "once.\n\n"
         "  hortator launch -n 4 ./train --epochs 3\n"
         "  hortator launch --nodes 2 --ranks-per-node 4 --gpus-per-node 4 ./train     (in a job)\n"
         "  hortator launch -n 4 --max-restarts 2 --log-dir logs ./train\n\n"
         "exit code: 0 finished; 75 stopped on purpose, to be resumed; 130 ended by Ctrl-C; 2 wrong usage; otherwise\n"
         "that of the failed rank\n\n"
      << launch_options().named << synonym_help(launch_options());
}

void print_command_json(const launching::LaunchRequest& request, const std::vector<std::string>& command) {
  const auto or_null = [](const std::optional<int>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  const nlohmann::ordered_json json = {{"schema_version", 1},
                                       {"launcher", command.front()},
                                       {"ranks", request.ranks},
                                       {"nodes", or_null(request.nodes)},
                                       {"ranks_per_node", or_null(request.ranks_per_node)},
                                       {"gpus_per_node", or_null(request.gpus_per_node)},
                                       {"threads", or_null(request.threads)},
                                       {"program", request.program},
                                       {"arguments", request.arguments},
                                       {"variables", request.variables},
                                       {"command", command}};
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

launching::LaunchRequest read_request(const po::variables_map& values, const launching::Settings& settings) {
  // Checked before the number of ranks: a missing program is the more common mistake.
  if (!values.contains("program")) {
    throw UsageError({.what = "The program is missing", .hint = "name it: hortator launch -n 2 ./train"});
  }
  auto request = launching::request_of(settings, nodes_at_hand());
  const auto command = values["program"].as<std::vector<std::string>>();
  request.program = command.front();
  request.arguments = {command.begin() + 1, command.end()};
  return request;
}

// A file into which the program writes what only it knows: the name of its run folder, then whether it stops when
// asked. Removed at the end.
class RunNote {
 public:
  RunNote() : file_(std::filesystem::absolute(text::concat(".hortator-run-", getpid()))) {}
  ~RunNote() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  RunNote(const RunNote&) = delete;
  RunNote& operator=(const RunNote&) = delete;

  std::string variable() const { return "HORTATOR_RUN_NOTE=" + file_.string(); }
  std::filesystem::path folder() const { return line(0); }
  bool stops_when_asked() const { return !line(1).empty(); }

 private:
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
  if ((output.reports().empty() && !killed) || (!folder.empty() && has_record(folder, start.of_files))) return;
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

// In a script of the user's own nobody else tells the ranks when the job ends, so that they stop in time.
void pass_deadline(launching::LaunchRequest& request) {
  const auto variables = core::process_variables();
  if (runtime::known_deadline(variables)) return;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto deadline = runtime::ask_deadline(variables, runtime::ask_shell(), now);
  if (deadline) request.variables.push_back(text::concat("HORTATOR_DEADLINE=", deadline->time_since_epoch().count()));
}

// srun has its own handling of Ctrl-C.
LauncherEnd run_once(launching::LaunchRequest request, const launching::LaunchEnvironment& facts) {
  const RunNote note;
  request.variables.push_back(note.variable());
  const Start start;
  launching::LauncherOutput output;
  const bool by_srun = facts.in_slurm && facts.srun_mpi;
  const Supervision by_mpirun{
      .grace = time_to_save, .stops_when_asked = [&] { return note.stops_when_asked(); }, .output = &output};
  auto end = supervise(launching::command_line(request, facts), by_srun ? Supervision{.output = &output} : by_mpirun);
  const auto folder = note.folder();
  if (!folder.empty()) end.code = recorded_code(folder, start.of_files, end.code);
  explain_end(output, folder, start, end.was_signalled);
  return end;
}

// If Slurm has lost nodes, continues on the remaining ones with proportionally fewer ranks.
void drop_lost_nodes(launching::LaunchRequest& request, const launching::LaunchEnvironment& facts) {
  if (!facts.in_slurm || !facts.srun_mpi || !request.nodes || !request.ranks_per_node) return;
  const auto remaining = count_remaining_nodes();
  if (!remaining || *remaining >= *request.nodes) return;
  request.nodes = remaining;
  request.ranks = *remaining * *request.ranks_per_node;
  std::cerr << "hortator: continuing on " << text::count(*remaining, "node") << " with "
            << text::count(request.ranks, "rank") << "\n";
}

// Not a run that was ended from outside: whoever sent the signal wanted its end.
bool may_restart(const LauncherEnd& end) {
  return end.code != 0 && end.code != stopped_code && end.code != usage_code && !end.was_signalled;
}

int run_until_done(launching::LaunchRequest request, const launching::LaunchEnvironment& facts, int restarts) {
  auto end = run_once(request, facts);
  while (may_restart(end) && restarts-- > 0) {
    std::cerr << "hortator: the run ended with exit code " << end.code << "; restarting it from its newest checkpoint ("
              << text::count(restarts, "restart") << " left)\n";
    drop_lost_nodes(request, facts);
    end = run_once(request, facts);
  }
  return end.code;
}

}  // namespace

int launch_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(launch_options(), "program"));
  if (values.contains("help")) {
    print_launch_help();
    return 0;
  }
  const auto settings = settings_of(values, launching::Scope::launch);
  auto request = read_request(values, settings);
  check_program(request.program);
  const auto facts = detect_environment(settings);
  if (const auto waiting = launching::thread_waiting(request, facts)) request.variables.push_back(*waiting);
  const auto command = launching::command_line(request, facts);
  if (values.contains("json")) {
    print_command_json(request, command);
    return 0;
  }
  if (values.contains("dry-run")) {
    std::cout << launching::shell_line(command) << "\n";
    return 0;
  }
  if (!request.log_dir.empty()) std::filesystem::create_directories(request.log_dir);
  pass_deadline(request);
  return run_until_done(std::move(request), facts, *settings.number("max_restarts"));
}

}  // namespace hortator::tools
