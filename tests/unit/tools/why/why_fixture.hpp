#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/process.hpp"
#include "core/time.hpp"
#include "observe/status/restart_record.hpp"
#include "observe/status/status_record.hpp"
#include "runtime/identity/ending_record.hpp"

/// Run folders as jobs leave them, made from the lines of why/corpus.jsonl.
namespace why_cases {

using Json = nlohmann::json;
namespace fs = std::filesystem;
using hortator::observe::RankStatus;
using hortator::observe::RestartRecord;
using hortator::runtime::EndingRecord;

constexpr double began = 1'790'000'000;

inline std::string host_of(const Json& one, int rank) {
  const int world = one.value("world", 1);
  const int hosts = one.value("hosts", 1);
  return "n" + std::to_string(rank / std::max(1, world / hosts) + 1);
}

inline EndingRecord ending_of(const Json& one, const Json& json) {
  const int rank = json.value("rank", 0);
  return {.run_id = "this",
          .reporter = json.value("reporter", rank),
          .rank = rank,
          .world = one.value("world", 1),
          .on_host = one.value("world", 1) / one.value("hosts", 1),
          .host = host_of(one, rank),
          .pid = 1000 + rank,
          .time = began + json.value("t", 0.0),
          .kind = json.value("kind", "error"),
          .type = json.value("type", ""),
          .signal = json.value("signal", 0),
          .updates = json.value("updates", std::int64_t{0}),
          .exit_code = json.value("exit_code", 1),
          .problem = json.value("problem", "")};
}

inline void write_row(const fs::path& file, int row, const std::string& text) {
  fs::create_directories(file.parent_path());
  if (!fs::exists(file)) std::ofstream(file).flush();
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(row) * static_cast<std::streamoff>(text.size()));
  out << text;
}

inline void write_failure(const fs::path& folder, const EndingRecord& ending) {
  const Json record = {{"run_id", ending.run_id},   {"rank", ending.rank},           {"world_size", ending.world},
                       {"on_host", ending.on_host}, {"host", ending.host},           {"pid", ending.pid},
                       {"at", ending.time},         {"kind", ending.kind},           {"type", ending.type},
                       {"signal", ending.signal},   {"updates", ending.updates},     {"where", nullptr},
                       {"problem", ending.problem}, {"exit_code", ending.exit_code}, {"time", "2026-09-21T15:06:40Z"}};
  std::ofstream(folder / "failure.json") << record.dump(2);
}

inline RankStatus status_of(const Json& one, int rank) {
  return {.run_id = "this",
          .rank = rank,
          .world = one.value("world", 1),
          .host = host_of(one, rank),
          .started = began - 600,
          .time = began - 0.5,
          .phase = "running",
          .updates = one.value("updates", std::int64_t{0}),
          .updates_per_second = 1};
}

/// Writes what `one` lists: status rows of all ranks that made updates, rows of endings, failure.json, restarts.jsonl.
/// `dead_process`: the process_id() of one that has ended.
inline void write_case(const fs::path& folder, const Json& one, const std::string& dead_process,
                       std::string (*signature)(const std::string&, const EndingRecord&)) {
  const auto status = folder / hortator::observe::status_folder;
  fs::create_directories(folder);
  for (int rank = 0; one.contains("updates") && rank < one.value("world", 1); ++rank) {
    auto row = status_of(one, rank);
    for (const auto& listed : one.value("ranks", Json::array())) {
      if (listed["rank"] == rank && listed.value("dead", false)) row.process = dead_process;
    }
    write_row(status / hortator::observe::ranks_file, rank, to_row(row));
  }
  for (const auto& ending : one.value("endings", Json::array())) {
    const auto record = ending_of(one, ending);
    write_row(status / hortator::runtime::endings_file, record.reporter, to_row(record));
  }
  if (one.contains("failure")) write_failure(folder, ending_of(one, one["failure"]));
  for (const auto& row : one.value("restarts", Json::array())) {
    const bool is_earlier = row.contains("like");
    RestartRecord record{.launch = "l",
                         .run_id = is_earlier                ? "before"
                                   : one.contains("updates") ? "this"
                                                             : "",
                         .exit_code = row.value("exit_code", 1),
                         .was_signalled = row.value("was_signalled", false),
                         .report = row.value("report", ""),
                         .rank = row.value("rank", -1),
                         .step = row.value("step", std::int64_t{0}),
                         .step_tolerance = row.value("step_tolerance", std::int64_t{0}),
                         .is_restarted = is_earlier};
    if (is_earlier) record.signature = signature(row["class"], ending_of(one, row["like"]));
    std::ofstream(folder / hortator::observe::restarts_file, std::ios::app) << to_row(record);
  }
  // The attempt itself, after an earlier one.
  if (!one.value("restarts", Json::array()).empty() && one["restarts"].back().contains("like")) {
    std::ofstream(folder / hortator::observe::restarts_file, std::ios::app)
        << to_row(RestartRecord{.launch = "l", .run_id = "this", .attempt = 2, .exit_code = 1});
  }
}

}  // namespace why_cases
