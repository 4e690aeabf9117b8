#include "tools/watch/run_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <hortator/error.hpp>
#include <tuple>

#include "core/process.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

// One row for each of a million ranks.
constexpr std::uint64_t max_status_bytes = std::uint64_t{1} << 31;

std::string content_of(const fs::path& file, std::uint64_t max_bytes = core::max_record_bytes) {
  return core::read_at_most(file, max_bytes).value_or("");
}

double modified(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) * 1e-9;
}

/// The file that rank 0 reports, otherwise the newest log in the folder.
fs::path metrics_file(const fs::path& folder, const std::vector<observe::RankStatus>& ranks) {
  std::error_code ignored;
  for (const auto& rank : ranks) {
    if (rank.rank == 0 && fs::exists(rank.rows, ignored)) return rank.rows;
  }
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder / "logs", ignored)) {
    if (entry.path().extension() != ".jsonl") continue;
    if (newest.empty() || modified(entry.path()) > modified(newest)) newest = entry.path();
  }
  return newest;
}

std::vector<tools::MetricRow> sampled(const fs::path& file, std::size_t count) {
  std::error_code ignored;
  const auto size = fs::file_size(file, ignored);
  std::ifstream in(file, std::ios::binary);
  if (ignored || !in) return {};
  const auto read = [&](std::uint64_t from, std::size_t bytes) {
    std::string content(bytes, '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(from));
    in.read(content.data(), static_cast<std::streamsize>(bytes));
    content.resize(static_cast<std::size_t>(in.gcount()));
    return content;
  };
  return tools::sample_rows(read, size, count);
}

std::vector<tools::CheckpointFact> read_checkpoints(const fs::path& folder) {
  constexpr auto manifest = "manifest.json";
  std::vector<fs::path> candidates = {folder / "checkpoint"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints", ignored)) candidates.push_back(entry.path());
  std::vector<tools::CheckpointFact> found;
  for (const auto& candidate : candidates) {
    const auto name = candidate.filename().string();
    const double at = modified(candidate / manifest);
    if (at > 0 && name.find('.') == std::string::npos) found.push_back({.name = name, .at = at});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.at > b.at; });
  return found;
}

std::optional<std::string> failure_of(const fs::path& folder) {
  const auto json = core::parse_record(content_of(folder / "failure.json"));
  if (!json.is_object()) return {};
  return text::concat("rank ", json.value("rank", 0), " (", json.value("host", ""), "): ", json.value("problem", ""));
}

std::optional<std::string> outcome_of(const fs::path& folder) {
  const auto json = core::parse_record(content_of(folder / "outcome.json"));
  return json.is_object() ? std::optional(json.value("outcome", "")) : std::nullopt;
}

constexpr std::array<const char*, 7> run_records = {"status",       "logs",       "outcome.json", "restarts.jsonl",
                                                    "failure.json", "checkpoint", "checkpoints"};
// What the job of a task writes before its program does.
constexpr std::array<const char*, 2> task_records = {"task.json", "jobs"};

template <typename Names>
bool has_any(const fs::path& folder, const Names& names) {
  std::error_code ignored;
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return fs::exists(folder / name, ignored); });
}

// Tasks by number: 2 comes before 10.
bool is_earlier_run(const fs::path& a, const fs::path& b) {
  const auto key = [](const fs::path& path) {
    const auto name = path.filename().string();
    long long number = -1;
    const bool is_number = text::parse_integer(name, number);
    return std::tuple(is_number ? 0 : 1, number, name);
  };
  return key(a) < key(b);
}

std::vector<std::pair<std::string, std::string>> read_arguments(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const auto json = core::parse_record<nlohmann::ordered_json>(content_of(folder / "task.json"));
  if (!json.is_object() || !json.contains("arguments") || !json["arguments"].is_object()) return arguments;
  for (const auto& [name, value] : json["arguments"].items()) {
    if (value.is_string()) arguments.emplace_back(name, value.get<std::string>());
  }
  return arguments;
}

bool has_killed_rank(const std::vector<observe::RankStatus>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const observe::RankStatus& rank) { return !rank.is_over && core::has_ended(rank.process); });
}

}  // namespace

std::vector<observe::RankStatus> read_ranks(const fs::path& folder) {
  const auto content = content_of(folder / observe::status_folder / observe::ranks_file, max_status_bytes);
  std::vector<observe::RankStatus> ranks;
  for (std::size_t at = 0; at + observe::row_bytes <= content.size(); at += observe::row_bytes) {
    auto status = observe::parse_status(std::string_view(content).substr(at, observe::row_bytes));
    if (status) ranks.push_back(std::move(*status));
  }
  // Rank 0's row may be incomplete while it is written, so that the newest row decides.
  const auto newest =
      std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.started < b.started; });
  if (newest == ranks.end()) return ranks;
  const auto run = newest->run_id;
  std::erase_if(ranks, [&](const auto& rank) { return rank.run_id != run; });
  return ranks;
}

std::vector<observe::Session> read_sessions(const fs::path& folder) {
  std::vector<observe::Session> sessions;
  for (const auto& row : text::split(content_of(folder / observe::status_folder / observe::sessions_file), '\n')) {
    if (auto session = observe::parse_session(row)) sessions.push_back(std::move(*session));
  }
  // Sessions before the last start from scratch belong to an earlier run.
  const auto first = std::find_if(sessions.rbegin(), sessions.rend(),
                                  [](const observe::Session& session) { return !session.resumed_after; });
  if (first != sessions.rend()) sessions.erase(sessions.begin(), first.base() - 1);
  return sessions;
}

std::vector<observe::RestartRecord> read_restarts(const fs::path& folder) {
  std::vector<observe::RestartRecord> rows;
  const auto content = content_of(folder / observe::restarts_file);
  for (const auto& line : text::split(content, '\n')) {
    if (auto row = observe::parse_restart(line)) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<observe::HostReport> read_host_reports(const fs::path& folder) {
  std::vector<observe::HostReport> rows;
  const auto content = content_of(folder / observe::status_folder / observe::host_reports_file);
  for (const auto& line : text::split(content, '\n')) {
    if (auto row = observe::parse_host_report(line)) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  if (has_any(folder, run_records)) return {folder};
  std::vector<fs::path> runs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored) || entry.path().filename() == "jobs") continue;
    if (has_any(entry.path(), run_records) || has_any(entry.path(), task_records)) runs.push_back(entry.path());
  }
  std::sort(runs.begin(), runs.end(), is_earlier_run);
  if (!runs.empty()) return runs;
  throw UsageError(
      {.what = text::concat("No records of a run in ", text::quote(folder.string())),
       .why = "a run of less than a second that logs nothing writes no records",
       .hint = "give its project.dir, by default runs/ and the program's name, or the folder of an array"});
}

tools::WatchFacts read_run(const fs::path& folder, std::size_t rows) {
  auto ranks = read_ranks(folder);
  // A process that has ended since its row was read may have written another one: read again what is final now.
  if (has_killed_rank(ranks)) ranks = read_ranks(folder);
  tools::WatchFacts facts{.folder = folder.string(),
                          .ranks = std::move(ranks),
                          .sessions = read_sessions(folder),
                          .attempts = read_restarts(folder),
                          .checkpoints = read_checkpoints(folder),
                          .outcome = outcome_of(folder),
                          .failure = failure_of(folder),
                          .arguments = read_arguments(folder)};
  facts.is_killed = !facts.outcome && !facts.failure && has_killed_rank(facts.ranks);
  facts.rows = sampled(metrics_file(folder, facts.ranks), rows);
  return facts;
}

std::vector<std::pair<std::string, std::string>> read_settings(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add = [&](const nlohmann::ordered_json& json, const char* only) {
    if (!json.is_object()) return;
    for (const auto& [name, value] : json.items()) {
      if (value.is_structured() || (only != nullptr && name != only)) continue;
      settings.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  };
  const auto record = [](const fs::path& file) { return core::parse_record<nlohmann::ordered_json>(content_of(file)); };
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "logs", ignored)) {
    if (entry.path().filename().string().ends_with(".config.json")) add(record(entry.path()), nullptr);
  }
  for (const char* file : {"outcome.json", "failure.json"}) add(record(folder / file), "hortator");
  return settings;
}

std::vector<tools::MetricRow> read_metrics(const fs::path& folder) {
  std::vector<tools::MetricRow> rows;
  std::ifstream in(metrics_file(folder, read_ranks(folder)));
  for (std::string line; std::getline(in, line);) {
    if (auto row = tools::parse_metric_row(line)) rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace hortator::tools
