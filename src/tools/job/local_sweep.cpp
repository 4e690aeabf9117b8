#include "tools/job/local_sweep.hpp"

#include <csignal>
#include <filesystem>
#include <iostream>
#include <utility>

#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "launch/request.hpp"
#include "launch/waiting.hpp"
#include "tools/job/submitting.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/ranks_run.hpp"
#include "tools/programs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

fs::path run_folder(const launching::Settings& settings, const std::string& program) {
  return settings.word("run_dir").value_or("runs/" + std::string(text::file_name(program)));
}

/// One task, as it is started here.
struct LocalTask {
  std::string command;  ///< as the user would type it
  std::string record;   ///< the content of task.json
  fs::path folder;
  launching::LaunchRequest request;
};

LocalTask local_task(const launching::Settings& settings, const launching::SweepTask& task, int number) {
  const auto folder = run_folder(settings, task.command.front()) / std::to_string(number);
  auto request = launching::request_of(settings);
  request.program = task.command.front();
  request.arguments = {task.command.begin() + 1, task.command.end()};
  request.variables.push_back("HORTATOR_RUN_DIR=" + folder.string());
  if (!request.log_dir.empty()) request.log_dir = (fs::path(request.log_dir) / folder.filename()).string();
  return {.command = launching::shell_line(task.command),
          .record = launching::to_json(task, number) + '\n',
          .folder = folder,
          .request = std::move(request)};
}

// A user who stops a task wants the end of the sweep.
bool ends_sweep(int code) { return code == stopped_code || code == 128 + SIGINT || code == 128 + SIGTERM; }

int run_all(const std::vector<LocalTask>& tasks, const launching::LaunchEnvironment& facts, int restarts) {
  int first_code = 0;
  std::size_t finished = 0;
  for (std::size_t number = 0; number < tasks.size(); ++number) {
    const auto& task = tasks[number];
    std::cerr << "hortator: task " << number << ": " << task.command << "  (" << task.folder.string() << ")"
              << std::endl;
    fs::create_directories(task.folder);
    write_file(task.folder / "task.json", task.record);
    const int code = run_ranks(task.request, facts, {.in_total = restarts});
    if (code == 0) {
      ++finished;
      continue;
    }
    if (first_code == 0) first_code = code;
    std::cerr << "hortator: task " << number << " ended with exit code " << code << std::endl;
    if (ends_sweep(code)) break;
  }
  std::cerr << "hortator: " << finished << " of " << text::count(tasks.size(), "task") << " finished\n";
  return first_code;
}

int print_all(const std::vector<LocalTask>& tasks, const launching::LaunchEnvironment& facts) {
  for (const auto& task : tasks)
    std::cout << launching::shell_line(launching::command_line(task.request, facts)) << "\n";
  return 0;
}

}  // namespace

bool has_no_scheduler(const launching::Settings& settings) {
  return !settings.word("scheduler") && schedulers_at_hand().empty();
}

int run_sweep_here(const launching::Settings& settings, const std::vector<launching::SweepTask>& tasks, bool is_dry) {
  const auto facts = detect_environment(settings);
  std::vector<LocalTask> all;
  for (const auto& task : tasks) {
    auto& one = all.emplace_back(local_task(settings, task, static_cast<int>(all.size())));
    check_program(one.request.program);
    if (const auto waiting = launching::thread_waiting(one.request, facts)) one.request.variables.push_back(*waiting);
  }
  note_assumed_ranks(all.front().request);
  std::cerr << "hortator: there is no scheduler here: the " << text::count(all.size(), "task")
            << " run one after the other on this machine\n";
  return is_dry ? print_all(all, facts) : run_all(all, facts, *settings.number("max_restarts"));
}

}  // namespace hortator::tools
