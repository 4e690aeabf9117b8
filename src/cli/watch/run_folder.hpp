#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/metrics.hpp"
#include "report/watch_view.hpp"

/// What a run has left in its folder: read alone, so that the job never notices.
namespace hortator::cli {

/// UsageError where there is no such folder, or nothing in it that a run leaves.
void check_run_folder(const std::filesystem::path& folder);

/// Everything, with about `rows` of what was logged, whatever there is of it.
report::WatchFacts read_run(const std::filesystem::path& folder, std::size_t rows);

/// All that was logged, in order; empty where nothing was.
std::vector<report::MetricRow> read_metrics(const std::filesystem::path& folder);

std::vector<report::Session> read_sessions(const std::filesystem::path& folder);

}  // namespace hortator::cli
