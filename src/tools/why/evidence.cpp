#include "tools/why/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/process.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "tools/watch/run_folder.hpp"
#include "tools/watch/watch_ranks.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using runtime::EndingRecord;

constexpr std::uint64_t max_endings_bytes = std::uint64_t{1} << 31;

nlohmann::json record_in(const fs::path& file) {
  return core::parse_record(core::read_at_most(file, core::max_record_bytes).value_or(""));
}

std::vector<EndingRecord> read_endings(const fs::path& folder) {
  const auto file = folder / observe::status_folder / runtime::endings_file;
  const auto content = core::read_at_most(file, max_endings_bytes).value_or("");
  std::vector<EndingRecord> endings;
  for (std::size_t at = 0; at + runtime::ending_bytes <= content.size(); at += runtime::ending_bytes) {
    auto ending = runtime::parse_ending(std::string_view(content).substr(at, runtime::ending_bytes));
    if (ending) endings.push_back(std::move(*ending));
  }
  return endings;
}

template <typename T>
T member(const nlohmann::json& json, const char* name, T otherwise) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return otherwise;
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    return otherwise;
  }
}

// What releases without the member "kind" have written.
std::string kind_of_old(int exit_code, std::string_view problem) {
  if (problem.starts_with("Killed by signal ")) return "killed";
  return exit_code == 2 ? "usage" : exit_code == 124 ? "stall" : "error";
}

std::optional<EndingRecord> read_failure(const fs::path& folder) {
  const auto json = record_in(folder / "failure.json");
  if (!json.is_object()) return {};
  EndingRecord ending{.run_id = member<std::string>(json, "run_id", ""),
                      .reporter = member(json, "rank", 0),
                      .rank = member(json, "rank", 0),
                      .world = member(json, "world_size", 1),
                      .on_host = member(json, "on_host", 0),
                      .host = member<std::string>(json, "host", ""),
                      .pid = member(json, "pid", 0L),
                      .time = member(json, "at", 0.0),
                      .kind = member<std::string>(json, "kind", ""),
                      .type = member<std::string>(json, "type", ""),
                      .signal = member(json, "signal", 0),
                      .updates = member(json, "updates", std::int64_t{0}),
                      .exit_code = member(json, "exit_code", 1),
                      .where = member<std::string>(json, "where", ""),
                      .problem = member<std::string>(json, "problem", "")};
  if (ending.kind.empty()) ending.kind = kind_of_old(ending.exit_code, ending.problem);
  if (ending.signal == 0 && ending.kind == "killed" && ending.exit_code > 128) ending.signal = ending.exit_code - 128;
  return ending;
}

// failure.json is also the row of the rank that wrote it, but has all of the problem. A rank's own row counts more than
// what others say of it.
void add_failure(std::vector<EndingRecord>& endings, EndingRecord failure) {
  const auto own = std::ranges::find_if(endings, [&](const EndingRecord& each) {
    return each.rank == failure.rank && each.kind == failure.kind && each.pid == failure.pid;
  });
  if (own == endings.end()) return endings.push_back(std::move(failure));
  own->problem = std::move(failure.problem);
}

// The name of the run whose end is asked for: that of its outcome or failure, else the newest that a rank has written.
std::string newest_run(const fs::path& folder, const std::vector<EndingRecord>& endings,
                       const std::vector<observe::RankStatus>& ranks) {
  for (const char* file : {"outcome.json", "failure.json"}) {
    const auto json = record_in(folder / file);
    if (json.is_object() && !member<std::string>(json, "run_id", "").empty()) return json["run_id"];
  }
  std::string run;
  double newest = 0;
  for (const auto& rank : ranks) {
    if (rank.time > newest) run = (newest = rank.time, rank.run_id);
  }
  for (const auto& ending : endings) {
    if (ending.time > newest) run = (newest = ending.time, ending.run_id);
  }
  return run;
}

// From how many ranks share a host: ranks that have written nothing may be on others.
int hosts_by_count(const Evidence& evidence) {
  int hosts = 1;
  for (const auto& ending : evidence.endings) {
    if (ending.on_host > 0) hosts = std::max(hosts, (evidence.world + ending.on_host - 1) / ending.on_host);
  }
  return hosts;
}

void add_ranks(Evidence& evidence, const std::vector<observe::RankStatus>& ranks) {
  const auto now = core::unix_time();
  std::set<std::string> hosts;
  for (const auto& rank : ranks) {
    if (!evidence.run_id.empty() && rank.run_id != evidence.run_id) continue;
    evidence.world = std::max(evidence.world, rank.world);
    hosts.insert(rank.host);
    if (rank.rank == 0) {
      evidence.mesh = rank.mesh;
      evidence.updates = rank.updates;
      evidence.step_tolerance = static_cast<std::int64_t>(std::ceil(rank.updates_per_second * rank.every)) + 1;
      evidence.is_running = !rank.is_over && !is_silent(rank, now);
    }
    if (rank.is_over) continue;
    evidence.unended.push_back({.rank = rank.rank,
                                .host = rank.host,
                                .phase = rank.phase,
                                .updates = rank.updates,
                                .time = rank.time,
                                .is_dead = core::has_ended(rank.process)});
  }
  for (const auto& ending : evidence.endings) {
    hosts.insert(ending.host);
    evidence.world = std::max({evidence.world, ending.rank + 1, ending.world});
  }
  evidence.hosts = std::max({1, static_cast<int>(hosts.size()), hosts_by_count(evidence)});
}

void add_new_updates(Evidence& evidence, const fs::path& folder) {
  evidence.new_updates = evidence.updates;
  for (const auto& session : read_sessions(folder)) {
    if (session.run_id != evidence.run_id) continue;
    evidence.world = std::max(evidence.world, session.world);
    evidence.new_updates = std::max<std::int64_t>(0, evidence.updates - session.resumed_after.value_or(0));
  }
}

void add_launcher(Evidence& evidence, const fs::path& folder, const std::optional<observe::RestartRecord>& attempt) {
  auto rows = read_restarts(folder);
  if (attempt) {
    evidence.launcher = attempt;
  } else if (!rows.empty() && (rows.back().run_id == evidence.run_id || evidence.run_id.empty())) {
    evidence.launcher = rows.back();
    rows.pop_back();
  }
  if (!evidence.launcher) return;
  for (auto& row : rows) {
    if (row.launch == evidence.launcher->launch) evidence.earlier.push_back(std::move(row));
  }
}

}  // namespace

Evidence read_evidence(const fs::path& folder, const std::optional<observe::RestartRecord>& attempt) {
  Evidence evidence{.endings = read_endings(folder)};
  const auto ranks = read_ranks(folder);
  evidence.run_id = newest_run(folder, evidence.endings, ranks);
  std::erase_if(evidence.endings, [&](const EndingRecord& ending) { return ending.run_id != evidence.run_id; });
  if (auto failure = read_failure(folder)) add_failure(evidence.endings, std::move(*failure));
  const auto outcome = record_in(folder / "outcome.json");
  if (outcome.is_object() && evidence.endings.empty()) evidence.outcome = member<std::string>(outcome, "outcome", "");
  add_ranks(evidence, ranks);
  add_new_updates(evidence, folder);
  add_launcher(evidence, folder, attempt);
  return evidence;
}

}  // namespace hortator::tools
