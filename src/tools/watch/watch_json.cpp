#include "tools/watch/watch_json.hpp"

#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "tools/watch/watch_ranks.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<std::string>& value) { return value ? Json(*value) : Json(); }
Json or_null(const std::optional<double>& value) { return value ? core::json_of(*value) : Json(); }

Json json_of_loop(const observe::LoopStatus& loop) {
  return {{"title", loop.title},
          {"done", loop.done},
          {"total", loop.total >= 0 ? Json(loop.total) : Json()},
          {"per_second", core::json_of(loop.per_second)}};
}

Json json_of_rank(const observe::RankStatus& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"phase", rank.phase},
          {"time", rank.time},
          {"is_over", rank.is_over},
          {"memory_bytes", rank.memory_bytes},
          {"cpus_used", core::json_of(rank.cpus_used)},
          {"cpus", rank.cpus},
          {"gpu_memory_bytes", rank.device_bytes},
          {"gpu_busy", or_null(rank.device_busy)},
          {"communication", core::json_of(rank.communication)},
          {"data_wait", core::json_of(rank.data_wait)}};
}

Json json_of(const observe::RunEnergy& energy) {
  if (energy.source.empty()) return {};
  return {{"joules", energy.joules},
          {"samples", energy.samples > 0 ? Json(energy.samples) : Json()},
          {"source", energy.source}};
}

Json json_of_attempt(const observe::RestartRecord& attempt) {
  return {{"time", attempt.time},
          {"exit_code", attempt.exit_code},
          {"rank", attempt.rank >= 0 ? Json(attempt.rank) : Json()},
          {"host", attempt.host},
          {"step", attempt.step},
          {"class", attempt.error_class},
          {"rule", attempt.rule},
          {"decision", attempt.decision},
          {"problem", attempt.problem},
          {"is_restarted", attempt.is_restarted},
          {"refused", attempt.refused.empty() ? Json() : Json(attempt.refused)},
          {"left_out", attempt.left_out},
          {"kept", attempt.kept}};
}

Json json_of_run(const WatchFacts& facts, double now) {
  Json json = {{"folder", facts.folder}, {"state", state_of(facts, now)}, {"problem", or_null(facts.failure)}};
  Json arguments = Json::object();
  for (const auto& [name, value] : facts.arguments) arguments[name] = value;
  json["arguments"] = arguments;
  const auto* main = main_rank(facts);
  json["run_id"] = main != nullptr ? Json(main->run_id) : Json();
  json["job"] = main != nullptr && !main->job.empty() ? Json(main->job) : Json();
  json["world_size"] = main != nullptr ? Json(main->world) : Json();
  json["mesh"] = main != nullptr && !main->mesh.empty() ? Json(main->mesh) : Json();
  json["started"] = main != nullptr ? Json(main->started) : Json();
  json["updates"] = main != nullptr ? Json(main->updates) : Json();
  json["updates_per_second"] = main != nullptr ? core::json_of(main->updates_per_second) : Json();
  json["deadline"] = or_null(main != nullptr && main->deadline ? main->deadline : facts.deadline);
  json["energy"] = json_of(energy_of(facts.ranks));
  json["loops"] = Json::array();
  json["ranks"] = Json::array();
  if (main != nullptr) {
    for (const auto& loop : main->loops) json["loops"].push_back(json_of_loop(loop));
  }
  for (const auto& rank : facts.ranks) json["ranks"].push_back(json_of_rank(rank));
  json["values"] = Json::object();
  for (const auto& [name, value] : latest_values(facts)) json["values"][name] = core::json_of(value);
  json["checkpoints"] = Json::array();
  for (const auto& checkpoint : facts.checkpoints)
    json["checkpoints"].push_back({{"name", checkpoint.name}, {"time", checkpoint.at}});
  json["failed_attempts"] = Json::array();
  for (const auto& attempt : facts.attempts) json["failed_attempts"].push_back(json_of_attempt(attempt));
  json["restarts"] = facts.sessions.empty() ? 0 : facts.sessions.size() - 1;
  return json;
}

}  // namespace

std::string watch_json(const std::vector<WatchFacts>& runs, double now) {
  Json json = {{"schema_version", 1}, {"time", now}, {"runs", Json::array()}};
  for (const auto& run : runs) json["runs"].push_back(json_of_run(run, now));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hortator::tools
