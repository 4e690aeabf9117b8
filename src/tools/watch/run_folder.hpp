#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/plot/metrics.hpp"
#include "tools/watch/watch_view.hpp"

/// What a run has left in its folder: read alone, so that the job never notices.
namespace hortator::tools {

/// UsageError where there is no such folder, or nothing in it that a run leaves.
void check_run_folder(const std::filesystem::path& folder);

/// Everything, with about `rows` of what was logged, whatever there is of it.
tools::WatchFacts read_run(const std::filesystem::path& folder, std::size_t rows);

/// All that was logged, in order; empty where nothing was.
std::vector<tools::MetricRow> read_metrics(const std::filesystem::path& folder);

std::vector<observe::Session> read_sessions(const std::filesystem::path& folder);

}  // namespace hortator::tools
