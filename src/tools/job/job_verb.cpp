#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/job/job.hpp"
#include "launch/srun_mpi.hpp"
#include "tools/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/job/submitting.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options known_options() {
  Options options;
  options.ends_at_text = true;
  add_setting_flags(options, launching::Scope::job);
  options.named.add_options()("submit", "submit the job; otherwise the script is only printed")(
      "chain", po::value<int>()->default_value(1)->value_name("N"),
      "submit N jobs in sequence, each resuming where the last one stopped (the only way on PBS)")("help,h",
                                                                                                   "print this help");
  return options;
}

int print_help() {
  std::cout
      << "usage: hortator job [options] [--submit] -- PROGRAM [ARGUMENTS]\n\n"
         "Writes a job script for Slurm or PBS. Before its time limit the job saves a checkpoint, requeues itself and\n"
         "resumes. The script needs no other file, and may be submitted in any folder: relative paths start where it\n"
         "was written. Without --submit its output goes where the scheduler puts it, %x-%j.out or NAME.oID; with it,\n"
         "into RUN_DIR/jobs. Each task of an array has the run folder RUN_DIR/TASK.\n\n"
         "  hortator job --nodes 4 --ranks-per-node 4 --gpus-per-node 4 --time 02:00:00 --submit -- ./train\n"
         "  hortator job --site alps --account abc --nodes 2 --ranks-per-node 4 -- ./train > job.sh\n"
         "  hortator job --scheduler pbs --chain 5 --nodes 2 --ranks-per-node 4 --submit -- ./train\n\n"
         "exit code: 0 done; 2 wrong usage; 1 the scheduler refused the job, or a file could not be written\n\n"
      << known_options().named << synonym_help(known_options());
  return 0;
}

std::string read_template(const std::string& name) {
  const auto file = data_folder() / "jobs" / name;
  auto content = core::read_whole(file);
  if (!content)
    throw Error({.what = text::quote(file.string()) + " cannot be read", .why = "it is the job's template"});
  return *std::move(content);
}

launching::LaunchEnvironment facts_of(const launching::Settings& settings, launching::Scheduler scheduler) {
  auto facts = facts_elsewhere(settings);
  if (scheduler == launching::Scheduler::pbs) return facts;
  facts.srun_mpi = settings.word("mpi");
  if (!facts.srun_mpi) facts.srun_mpi = launching::choose_srun_mpi(run_command("srun --mpi=list").output, facts.mpi);
  if (!facts.srun_mpi) facts.srun_mpi = "pmix";
  return facts;
}

std::string script_of(const launching::Job& job, const launching::LaunchEnvironment& facts) {
  const auto* name = job.scheduler == launching::Scheduler::slurm ? "slurm.sh.in" : "pbs.sh.in";
  return launching::render(job, facts,
                           {.scheduler = read_template(name),
                            .common = read_template("common.sh.in"),
                            .agent = read_template("pbs_agent.sh")});
}

// As the user calls the folder: other nodes may not know where a link or an automounter leads to here.
std::string working_folder() {
  const auto own = core::variable("PWD");
  std::error_code ignored;
  return own && fs::equivalent(*own, ".", ignored) ? *own : fs::current_path().string();
}

// A script may be written before its program is built, or for another machine.
void warn_without(const std::string& program) {
  try {
    check_program(program);
  } catch (const UsageError& error) {
    std::cerr << "hortator: warning: " << error.what() << "\n";
  }
}

int chain_length(const po::variables_map& values) {
  const int length = values["chain"].as<int>();
  if (length < 1 || length > 1000) {
    throw UsageError({.what = text::concat("--chain: expected a whole number from 1 to 1000, got '", length, "'")});
  }
  return length;
}

}  // namespace

int job_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(known_options(), "program"));
  if (values.contains("help")) return print_help();
  if (!values.contains("program")) {
    throw UsageError({.what = "The program is missing", .hint = "name it after --: hortator job ... -- ./train"});
  }
  auto remaining = values["program"].as<std::vector<std::string>>();
  const auto settings = settings_of(values, launching::Scope::job);
  const auto scheduler = scheduler_of(settings);
  const int length = chain_length(values);
  const auto program = remaining.front();
  remaining.erase(remaining.begin());
  auto job = launching::job_of(settings, scheduler, program, remaining);
  job.folder = working_folder();
  job.is_chain = length > 1;
  const auto facts = facts_of(settings, scheduler);
  if (!values.contains("submit")) {
    warn_without(program);
    std::cout << script_of(job, facts);
    return 0;
  }
  check_program(program);
  (void)script_of(job, facts);  // an error leaves no folder behind
  const auto records = fs::path(job.run_dir) / "jobs";
  job.stamp = make_stamped_folder(records);
  job.output = (records / job.stamp).string();
  const auto file = records / job.stamp / "job.sh";
  write_script(file, script_of(job, facts));
  std::string id;
  for (int i = 0; i < length; ++i) {
    id = submit(scheduler, file, id);
    std::cout << "submitted: " << id << "  " << file.string() << "\n";
  }
  return 0;
}

}  // namespace hortator::tools
