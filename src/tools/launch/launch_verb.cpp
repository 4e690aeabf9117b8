#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "launch/command_arguments.hpp"
#include "launch/job/quote.hpp"
#include "launch/profiler.hpp"
#include "launch/request.hpp"
#include "launch/waiting.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/launch/ranks_run.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

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
         "Starts PROGRAM on N ranks: with srun inside a Slurm allocation, flux run under Flux, mpiexec under PALS,\n"
         "otherwise with the mpirun of the MPI that Hortator was built with. Everything after PROGRAM is passed to\n"
         "PROGRAM. SIGUSR1 and SIGTERM are forwarded to the ranks. Ctrl-C asks a program that checks should_stop()\n"
         "to save and stop; a second one ends it at once.\n\n"
         "  hortator launch -n 4 ./train --epochs 3\n"
         "  hortator launch --nodes 2 --ranks-per-node 4 --gpus-per-node 4 ./train     (in a job)\n"
         "  hortator launch -n 4 --max-restarts 2 --log-dir logs ./train\n"
         "  hortator launch -n 4 --max-restarts 9 --memory-checkpoint 10 ./train\n\n"
         "A failed run is restarted from its newest checkpoint up to --max-restarts times, unless the rules of\n"
         "`hortator why` say that this cannot help: a rank that fails twice at the same step with the same error has "
         "a\n"
         "bug. restarts.jsonl in the run folder lists the attempts, and `hortator watch` shows them.\n\n"
         "With --memory-checkpoint 10 or 30s, a program that calls should_stop() after each step also keeps a "
         "checkpoint\n"
         "in the memory of its nodes, and of a neighbour of each, every 10 steps or 30 s. A restart loads the newest "
         "one\n"
         "of memory and disk. The memory is given back when the launch ends. --local-checkpoint keeps others on the\n"
         "nodes' own disks, and --project-checkpoint saves into the project's folder, each at its own interval.\n\n"
         "With --on-checkpoint COMMAND, the launch runs COMMAND for each checkpoint that all ranks have completed, one "
         "at\n"
         "a time and beside the ranks: --on-checkpoint 'rsync -a {} archive:run7'. {} is the checkpoint's folder. No\n"
         "shell reads the command. If it fails, the launch says so, and the run continues.\n\n"
         "With --profiler nsys or --profiler perf (--profile means the same), each rank runs under that profiler, "
         "which\n"
         "writes RUN_DIR/profile/rank_N. Signals then reach the profiler: let the program end after some steps.\n\n"
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
  if (const auto folder = settings.word("run_dir")) request.variables.push_back("HORTATOR_RUN_DIR=" + *folder);
  return request;
}

std::vector<std::string> on_checkpoint_of(const launching::Settings& settings) {
  const auto command = settings.word("on_checkpoint");
  if (!command) return {};
  auto arguments = launching::command_arguments("--on-checkpoint", *command);
  check_program(arguments.front());
  return arguments;
}

// Each rank runs under the profiler. The folder is made here, on a file system of all nodes.
void add_profiler(launching::LaunchRequest& request, const launching::Settings& settings,
                  const launching::LaunchEnvironment& facts, bool is_dry) {
  const auto profiler = settings.word("profiler");
  if (!profiler) return;
  if (!is_dry && !find_program(*profiler)) {
    throw UsageError({.what = text::concat("--profile: no program ", text::quote(*profiler), " on PATH"),
                      .hint = *profiler == "nsys" ? "load the module of NVIDIA Nsight Systems"
                                                  : "install linux-perf, or load the module that has it"});
  }
  const auto run = settings.word("run_dir").value_or("runs/" + std::string(text::file_name(request.program)));
  const auto folder = std::filesystem::absolute(run) / "profile";
  if (!is_dry) std::filesystem::create_directories(folder);
  request = launching::profiled(std::move(request), *profiler, folder.string(), facts);
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
  if (settings.word("memory_checkpoint") && *settings.number("max_restarts") == 0) {
    throw UsageError({.what = "--memory-checkpoint without --max-restarts",
                      .why = "checkpoints in memory end with the launch, and only its restarts load them",
                      .hint = "add --max-restarts N"});
  }
  const auto on_checkpoint = on_checkpoint_of(settings);
  note_assumed_ranks(request);
  const auto facts = detect_environment(settings);
  launching::place_on_hosts(request, facts.slots_of_host, nodes_at_hand());
  if (const auto waiting = launching::thread_waiting(request, facts)) request.variables.push_back(*waiting);
  add_profiler(request, settings, facts, values.contains("json") || values.contains("dry-run"));
  const auto command = launching::command_line(request, facts);
  if (values.contains("json")) {
    print_command_json(request, command);
    return 0;
  }
  if (values.contains("dry-run")) {
    std::cout << launching::shell_line(command) << "\n";
    return 0;
  }
  return run_ranks(
      std::move(request), facts,
      {.in_total = *settings.number("max_restarts"), .per_hour = *settings.number("restarts_per_hour")},
      {.parent = *settings.word("memory_folder"), .is_asked_for = settings.word("memory_checkpoint").has_value()},
      on_checkpoint);
}

}  // namespace hortator::tools
