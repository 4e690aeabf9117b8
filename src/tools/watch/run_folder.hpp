#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/status/host_report.hpp"
#include "tools/watch/metrics.hpp"
#include "tools/watch/watch_view.hpp"

/// Reads what a run has written in its folder, without any effect on the running job.
namespace hortator::tools {

/// The run folders that `folder` stands for: itself, or those of the tasks of an array, by number. Throws UsageError if
/// there is no run.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// Everything that exists, with about `rows` of the logged rows.
tools::WatchFacts read_run(const std::filesystem::path& folder, std::size_t rows);

/// The settings that the run gave its trackers, and the versions in its records.
std::vector<std::pair<std::string, std::string>> read_settings(const std::filesystem::path& folder);

/// All logged rows, in order.
std::vector<tools::MetricRow> read_metrics(const std::filesystem::path& folder);

/// The status rows of the newest run only: an earlier run may have had more ranks.
std::vector<observe::RankStatus> read_ranks(const std::filesystem::path& folder);

/// The rows of restarts.jsonl, in order.
std::vector<observe::RestartRecord> read_restarts(const std::filesystem::path& folder);

/// The rows of status/hosts.jsonl, in order.
std::vector<observe::HostReport> read_host_reports(const std::filesystem::path& folder);

std::vector<observe::Session> read_sessions(const std::filesystem::path& folder);

}  // namespace hortator::tools
