#include "tools/job/making.hpp"

#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/job/directives.hpp"
#include "launch/job/node_facts.hpp"
#include "launch/job/quote.hpp"
#include "launch/srun_mpi.hpp"
#include "tools/flags.hpp"
#include "tools/job/submitting.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

std::string read_template(const std::string& name) {
  const auto file = data_folder() / "jobs" / name;
  auto content = core::read_whole(file);
  if (!content)
    throw Error({.what = text::quote(file.string()) + " cannot be read", .why = "it is the job's template"});
  return *std::move(content);
}

launching::LaunchEnvironment facts_of(const launching::Settings& settings, launching::Scheduler scheduler) {
  auto facts = facts_elsewhere(settings);
  if (scheduler != launching::Scheduler::slurm) return facts;
  facts.srun_mpi = settings.word("srun_mpi");
  if (!facts.srun_mpi) facts.srun_mpi = launching::choose_srun_mpi(run_command("srun --mpi=list").output, facts.mpi);
  if (!facts.srun_mpi) facts.srun_mpi = "pmix";
  return facts;
}

std::string script_of(const launching::Job& job, const launching::LaunchEnvironment& facts) {
  const auto& scheduler = launching::facts_of(job.scheduler);
  const auto read = [](std::string_view name) { return name.empty() ? "" : read_template(std::string(name)); };
  return launching::render(job, facts,
                           {.script = read(scheduler.part.empty() ? "slurm.sh.in" : "batch.sh.in"),
                            .part = read(scheduler.part),
                            .common = read("common.sh.in"),
                            .agent = read(scheduler.agent)});
}

// As the user calls the folder: other nodes may not know where a link or an automounter leads to here.
std::string working_folder() {
  const auto own = core::variable("PWD");
  std::error_code ignored;
  return own && fs::equivalent(*own, ".", ignored) ? *own : fs::current_path().string();
}

// PBS and Grid Engine pass no PATH to their jobs, unlike the others: a program that is found by it here gets its whole
// path.
std::string program_for(launching::Scheduler scheduler, const std::string& typed) {
  const bool passes_path = scheduler != launching::Scheduler::pbs && scheduler != launching::Scheduler::grid_engine;
  if (passes_path || typed.find('/') != std::string::npos) return typed;
  const auto found = find_program(typed);
  return found ? fs::absolute(*found).string() : typed;
}

// A script may be written before its program is built, or for another machine.
void warn_without(const std::string& program) {
  try {
    check_program(program);
  } catch (const UsageError& error) {
    std::cerr << "hortator: warning: " << error.what() << "\n";
  }
}

// Slurm does not run a job whose output it cannot write, and reports nothing.
void check_output_folders(const launching::Job& job, bool is_submitted) {
  for (const auto* key : {"output", "error"}) {
    const auto file = job.settings.word(key);
    const auto folder = fs::path(file.value_or("")).parent_path();
    if (folder.empty() || fs::is_directory(folder) || folder.string().find('%') != std::string::npos) continue;
    if (is_submitted) {
      fs::create_directories(folder);
    } else {
      std::cerr << "hortator: warning: create the folder " << folder.string()
                << " before you submit the script: without it the job ends without a message\n";
    }
  }
}

std::vector<std::vector<std::string>> submit_commands(launching::Scheduler scheduler, const fs::path& file,
                                                      int chain_length) {
  std::vector<std::vector<std::string>> commands;
  for (int i = 1; i <= chain_length; ++i) {
    const auto after = i == 1 ? std::string() : text::concat("JOB", i - 1);
    commands.push_back(submit_command(scheduler, file, {.number = i, .after = after}));
  }
  return commands;
}

void print_job_json(const launching::Job& job, const std::string& script,
                    const std::vector<std::vector<std::string>>& commands) {
  nlohmann::ordered_json json = {{"schema_version", 1},
                                 {"scheduler", launching::facts_of(job.scheduler).name},
                                 {"name", job.name},
                                 {"ranks", job.request.ranks},
                                 {"nodes", *job.request.nodes},
                                 {"ranks_per_node", *job.request.ranks_per_node},
                                 {"gpus_per_node", job.request.gpus_per_node.value_or(0)},
                                 {"cpus_per_rank", launching::cpus_per_rank(job).value_or(1)},
                                 {"time_seconds", job.seconds},
                                 {"requeues", job.scheduler == launching::Scheduler::slurm ? job.requeues : 0},
                                 {"tasks", job.array ? job.array->count : 1},
                                 {"run_dir", job.run_dir},
                                 {"directives", launching::directives(job)},
                                 {"submit_commands", commands},
                                 {"script", script}};
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

int print(const launching::Job& job, const po::variables_map& values, int chain_length, bool is_submitted) {
  const auto script = script_of(job, facts_of(job.settings, job.scheduler));
  const auto file = is_submitted ? fs::path(job.run_dir) / "jobs" / "TIME" / "job.sh" : fs::path("job.sh");
  const auto commands = submit_commands(job.scheduler, file, chain_length);
  if (values.contains("json")) {
    print_job_json(job, script, commands);
    return 0;
  }
  std::cout << script;
  if (!is_submitted) return 0;
  for (const auto& command : commands) std::cerr << "hortator: would run: " << launching::shell_line(command) << "\n";
  return 0;
}

int submit_all(launching::Job& job, int chain_length) {
  const auto facts = facts_of(job.settings, job.scheduler);
  (void)script_of(job, facts);  // an error leaves no folder behind
  const auto records = fs::path(job.run_dir) / "jobs";
  job.stamp = make_stamped_folder(records);
  job.output = (records / job.stamp).string();
  const auto file = records / job.stamp / "job.sh";
  write_script(file, script_of(job, facts));
  std::string id;
  for (int i = 1; i <= chain_length; ++i) {
    id = submit(job.scheduler, file, {.number = i, .after = id});
    std::cout << "submitted: " << id << "  " << file.string() << "\n";
  }
  return 0;
}

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

// Sets the CPUs of a node that the settings leave open, to those of the nodes that the job may get. They are asked
// from the scheduler, since this machine may be unlike its nodes. Warns if it does not answer: then each rank gets one
// CPU.
void complete_cpus(launching::Job& job) {
  if (job.request.threads || job.cpus_per_node) return;
  const auto& scheduler = launching::facts_of(job.scheduler);
  if (job.scheduler == launching::Scheduler::flux) return;  // it then gives whole nodes
  std::vector<launching::NodeFacts> nodes;
  if (job.scheduler == launching::Scheduler::slurm) nodes = ask_slurm(job.settings);
  if (job.scheduler == launching::Scheduler::pbs) nodes = ask_pbs();
  job.cpus_per_node =
      launching::cpus_of_any(nodes, {.count = job.request.gpus_per_node.value_or(0), .types = job.request.gpu_types});
  job.cpus_source = job.scheduler == launching::Scheduler::slurm ? "sinfo" : "pbsnodes";
  if (job.cpus_per_node) return;
  const bool is_asked = job.scheduler == launching::Scheduler::slurm || job.scheduler == launching::Scheduler::pbs;
  std::cerr << "hortator: warning: the job asks for one CPU per rank, since "
            << (is_asked ? text::concat(job.cpus_source, " reports no node that it could get")
                         : text::concat(scheduler.title, " is not asked for the CPUs of its nodes"))
            << "; use --threads N or --cpus-per-node N\n";
}

}  // namespace

void add_job_options(Options& options) {
  options.ends_at_text = true;
  add_setting_flags(options, launching::Scope::job);
  options.named.add_options()("submit", "submit the job; otherwise the script is only printed")(
      "dry-run", "print the script and, with --submit, the commands that would submit it; submit nothing")(
      "json", "print the job as JSON; submit nothing")("help,h", "print this help");
}

launching::Job described_job(const po::variables_map& values, const std::string& verb) {
  if (!values.contains("program")) {
    throw UsageError(
        {.what = "The program is missing", .hint = "name it after --: hortator " + verb + " ... -- ./train"});
  }
  auto arguments = values["program"].as<std::vector<std::string>>();
  const auto settings = settings_of(values, launching::Scope::job);
  const auto scheduler = scheduler_of(settings);
  const auto program = program_for(scheduler, arguments.front());
  arguments.erase(arguments.begin());
  auto job = launching::job_of(settings, scheduler, program, arguments);
  (void)launching::directives(job);  // errors come before warnings about the nodes
  note_assumed_ranks(job.request);
  complete_cpus(job);
  job.folder = working_folder();
  return job;
}

int print_or_submit(launching::Job job, const po::variables_map& values, int chain_length) {
  const bool is_submitted = values.contains("submit");
  const bool is_dry = !is_submitted || values.contains("dry-run") || values.contains("json");
  job.is_chain = chain_length > 1;
  if (is_dry) {
    warn_without(job.request.program);
  } else {
    check_program(job.request.program);
  }
  check_output_folders(job, !is_dry);
  const int code = is_dry ? print(job, values, chain_length, is_submitted) : submit_all(job, chain_length);
  std::cerr << "hortator: the job may use " << launching::budget_of(job, chain_length)
            << (job.requeues > 0 && job.scheduler == launching::Scheduler::slurm
                    ? text::concat(" (", text::count(job.requeues, "requeue"), "; --requeues N)")
                    : "")
            << "\n";
  return code;
}

}  // namespace hortator::tools
