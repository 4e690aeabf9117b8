#pragma once

#include <optional>
#include <string>

#include "launch/job/job.hpp"
#include "tools/command_line/options.hpp"

/// What `hortator job` and `hortator sweep` have in common.
namespace hortator::tools {

/// Adds --submit, --dry-run, --json and the settings of a job.
void add_job_options(Options& options);

/// The job that the options and the settings describe. `verb` is for messages. Throws UsageError.
launching::Job described_job(const boost::program_options::variables_map& values, const std::string& verb);

/// Prints the script, or submits it `chain_length` times, one after another. Returns the exit code.
int print_or_submit(launching::Job job, const boost::program_options::variables_map& values, int chain_length);

}  // namespace hortator::tools
