#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/job/job.hpp"
#include "launch/settings/settings.hpp"

/// Submits scripts to this machine's scheduler.
namespace hortator::tools {

/// The schedulers whose commands are on PATH.
std::vector<launching::Scheduler> schedulers_at_hand();

/// The scheduler of the settings, otherwise the one whose command is on PATH. Throws UsageError if there is none, or
/// both.
launching::Scheduler scheduler_of(const launching::Settings& settings);

/// Creates a new folder in `folder`, whatever other processes do, and returns its name: the local time as
/// "20261121-195501", with a number if that name is taken.
std::string make_stamped_folder(const std::filesystem::path& folder);

/// Writes `script` as an executable file. Creates its folder, where the scheduler writes the job's output: some
/// schedulers lose the output if the folder is missing.
void write_script(const std::filesystem::path& file, const std::string& script);

/// A job of a chain.
struct ChainLink {
  int number = 1;
  std::string after = "";  ///< the id of the job before it, which must end first; empty: none
};

/// The command that submits the script.
std::vector<std::string> submit_command(launching::Scheduler scheduler, const std::filesystem::path& script,
                                        const ChainLink& link);

/// Submits a job and returns its id.
std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const ChainLink& link = {});

}  // namespace hortator::tools
