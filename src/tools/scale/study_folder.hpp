#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/plot/chart.hpp"
#include "tools/scale/scale_plan.hpp"
#include "tools/scale/scale_report.hpp"

/// A scaling study on disk: plan.json, a file a run, collectives.json, and what is made of them.
namespace hortator::tools {

void write_plan(const std::filesystem::path& folder, const tools::ScalePlan& plan);
tools::ScalePlan read_plan(const std::filesystem::path& folder);

void write_point(const std::filesystem::path& folder, const tools::ScalePoint& point);
/// The points that are there.
std::vector<tools::ScalePoint> read_points(const std::filesystem::path& folder, const tools::ScalePlan& plan);
bool has_point(const std::filesystem::path& folder, const tools::ScaleRun& run);

/// Error for a set that is not complete or mixed.
tools::Study read_study(const std::filesystem::path& folder);
/// report.md, scaling.svg and scaling.png; returns the table.
std::string write_report(const std::filesystem::path& folder);

/// The pictures of a study, when `runs` is one; nothing when they are runs.
std::optional<std::vector<tools::Panel>> study_panels(const std::vector<std::string>& runs);

/// What `hortator bench collectives --json` prints, as a line through its all-reduces. Error where it has none.
tools::Network network_in(int ranks, const std::string& lines);
constexpr auto collectives_file = "collectives.json";

/// A file's content; Error when it cannot be read or written.
std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& content);

}  // namespace hortator::tools
