#pragma once

#include <filesystem>
#include <string>

#include "tools/scale/scale_plan.hpp"

/// The runs of a scaling study, as children of this process.
namespace hortator::tools {

/// The executable's checksum, so that a rebuilt program counts as a different one.
std::string checksum_of(const std::string& program);

/// Starts the program with `hortator launch`, waits for it, and writes its point. Throws Error with the name of the log
/// if the run fails or measures nothing.
void make_run(const std::filesystem::path& folder, const ScalePlan& plan, const ScaleRun& run);

/// Times all-reduces on `ranks` ranks and writes the latency and bandwidth fitted to them.
void measure_collectives(const std::filesystem::path& folder, const ScalePlan& plan, int ranks);

}  // namespace hortator::tools
