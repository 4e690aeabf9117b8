#pragma once

#include <filesystem>
#include <string>

#include "tools/scale/scale_plan.hpp"

/// The runs of a scaling study, as children of this process.
namespace hortator::tools {

/// The executable's checksum: a program that was built anew is another one.
std::string checksum_of(const std::string& program);

/// Starts the program by `hortator launch`, waits, and writes its point. Error with the name of the log for a run that
/// fails or measures nothing.
void make_run(const std::filesystem::path& folder, const tools::ScalePlan& plan, const tools::ScaleRun& run);

/// Times all-reduces on so many ranks and writes the line through them.
void measure_collectives(const std::filesystem::path& folder, const tools::ScalePlan& plan, int ranks);

}  // namespace hortator::tools
