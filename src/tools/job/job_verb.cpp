#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/job/making.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options job_options() {
  Options options;
  add_job_options(options);
  options.named.add_options()("chain", po::value<int>()->default_value(1)->value_name("N"),
                              "submit N jobs in sequence, each resuming where the last one stopped (only jobs of Slurm "
                              "also requeue themselves)");
  return options;
}

int print_job_help() {
  std::cout
      << "usage: hortator job [options] [--submit] -- PROGRAM [ARGUMENTS]\n\n"
         "Writes a job script for Slurm, PBS, Flux, LSF or Grid Engine. Before its time limit the job saves a\n"
         "checkpoint. Under Slurm it requeues itself and resumes; elsewhere the next job of a --chain does.\n"
         "The script needs no other file, and may be submitted in any folder: relative paths start where it was\n"
         "written. Without --submit its output goes where the scheduler puts it, %x-%j.out or NAME.oID; with it,\n"
         "into RUN_DIR/jobs. Each task of an array has the run folder RUN_DIR/TASK. Unless --threads or\n"
         "--cpus-per-node is given, the CPUs of each rank are its share of those that sinfo or pbsnodes reports.\n\n"
         "  hortator job --nodes 4 --gpus-per-node 4 --time 02:00:00 --submit -- ./train\n"
         "  hortator job --site alps -A abc -N 2 --ntasks-per-node 4 -- ./train > job.sh\n"
         "  hortator job -p gpu --gpus-per-node a100:4 --mem 200G --array 0-3 --dry-run --submit -- ./train\n"
         "  hortator job --scheduler pbs -l select=2:ncpus=64:mpiprocs=4 -q prod --chain 5 --submit -- ./train\n\n"
         "exit code: 0 done; 2 wrong usage; 1 the scheduler refused the job, or a file could not be written\n\n"
      << job_options().named << synonym_help(job_options());
  return 0;
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
  const auto values = parse(arguments, with_text(job_options(), "program"));
  if (values.contains("help")) return print_job_help();
  const int length = chain_length(values);
  return print_or_submit(described_job(values, "job"), values, length);
}

}  // namespace hortator::tools
