#pragma once

#include <filesystem>
#include <string>

#include "launch/job/job.hpp"
#include "launch/settings/settings.hpp"

/// Handing scripts to this machine's scheduler.
namespace hortator::tools {

/// The one that was said, or whose command is here. UsageError where there is none.
launching::Scheduler scheduler_of(const launching::Settings& settings);

/// "20261121-195501": tells apart what one user makes.
std::string stamp();

/// `script` as an executable file; the folder is made, too: the scheduler writes its output there, and some lose it
/// where the folder is missing.
void write_script(const std::filesystem::path& file, const std::string& script);

/// The job's name by the scheduler. `after`: of a job that has to end first; empty: none.
std::string submit(launching::Scheduler scheduler, const std::filesystem::path& script, const std::string& after);

}  // namespace hortator::tools
