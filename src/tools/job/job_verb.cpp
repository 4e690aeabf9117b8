#include <filesystem>
#include <hortator/error.hpp>
#include <iostream>

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
         "resumes. The script needs no other file.\n\n"
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
  const auto job = launching::job_of(settings, scheduler, program, remaining, stamp());
  const auto* name = scheduler == launching::Scheduler::slurm ? "slurm.sh.in" : "pbs.sh.in";
  const auto script = launching::render(job, facts_of(settings, scheduler),
                                        {.scheduler = read_template(name), .common = read_template("common.sh.in")});
  if (!values.contains("submit")) {
    std::cout << script;
    return 0;
  }
  check_program(program);
  const auto file = fs::path(job.records) / "job.sh";
  write_script(file, script);
  std::string id;
  for (int i = 0; i < length; ++i) {
    id = submit(scheduler, file, id);
    std::cout << "submitted: " << id << "  " << file.string() << "\n";
  }
  return 0;
}

}  // namespace hortator::tools
