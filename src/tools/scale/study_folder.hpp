#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/charts/chart.hpp"
#include "tools/scale/scale_plan.hpp"
#include "tools/scale/scale_report.hpp"

/// A scaling study on disk: plan.json, one file for each run, collectives.json, and the report.
namespace hortator::tools {

void write_plan(const std::filesystem::path& folder, const ScalePlan& plan);
ScalePlan read_plan(const std::filesystem::path& folder);

void write_point(const std::filesystem::path& folder, const ScalePoint& point);
/// The points that exist.
std::vector<ScalePoint> read_points(const std::filesystem::path& folder, const ScalePlan& plan);
bool has_point(const std::filesystem::path& folder, const ScaleRun& run);

/// Throws Error if points are missing or cannot be compared.
Study read_study(const std::filesystem::path& folder);
/// Writes report.md, scaling.svg and, in a build with Cairo, scaling.png. Returns the table.
std::string write_report(const std::filesystem::path& folder);

/// The panels of a study if `runs` is the folder of one; nothing if they are ordinary runs.
std::optional<std::vector<Panel>> study_panels(const std::vector<std::string>& runs);

/// Fits latency and bandwidth to the all-reduces in the output of `hortator bench collectives --json`. Throws Error if
/// there are none.
Network network_in(int ranks, const std::string& lines);
constexpr auto collectives_file = "collectives.json";

/// The content of a file. Both throw Error on failure.
std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& content);

}  // namespace hortator::tools
