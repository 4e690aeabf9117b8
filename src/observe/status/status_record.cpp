#include "observe/status/status_record.hpp"

#include "core/record_json.hpp"
#include "core/text/json_number.hpp"

namespace hortator::observe {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of_status(const RankStatus& status) {
  Json json = {{"run_id", status.run_id},
               {"rank", status.rank},
               {"world", status.world},
               {"host", status.host},
               {"job", status.job},
               {"started", status.started},
               {"time", status.time},
               {"every", status.every},
               {"over", status.is_over},
               {"phase", status.phase},
               {"updates", status.updates},
               {"updates_per_second", core::json_of(status.updates_per_second)},
               {"cpus_used", core::json_of(status.cpus_used)},
               {"cpus", status.cpus},
               {"memory_bytes", status.memory_bytes},
               {"device_bytes", status.device_bytes},
               {"device_peak_bytes", status.device_peak_bytes},
               {"communication", core::json_of(status.communication)},
               {"data_wait", core::json_of(status.data_wait)}};
  json["loops"] = Json::array();
  for (const auto& loop : status.loops) {
    json["loops"].push_back({{"title", loop.title},
                             {"done", loop.done},
                             {"total", loop.total},
                             {"per_second", core::json_of(loop.per_second)}});
  }
  if (status.save) {
    json["save"] = {{"at", status.save->at}, {"seconds", status.save->seconds}, {"longest", status.save->longest}};
  }
  if (status.deadline) json["deadline"] = *status.deadline;
  if (status.device_total_bytes > 0) {
    json["device"] = {{"used_bytes", status.device_used_bytes}, {"total_bytes", status.device_total_bytes}};
    if (status.device_busy) json["device"]["busy"] = *status.device_busy;
  }
  if (!status.rows.empty()) json["rows"] = status.rows;
  if (!status.values.empty()) json["values"] = Json::object();
  for (const auto& [name, value] : status.values) json["values"][name] = core::json_of(value);
  return json;
}

std::optional<Json> parsed(std::string_view row) {
  auto json = core::parse_record<Json>(row);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

RankStatus read_status(const Json& json) {
  RankStatus status{.run_id = json.at("run_id"),
                    .rank = json.at("rank"),
                    .world = json.at("world"),
                    .host = json.at("host"),
                    .job = json.at("job"),
                    .started = json.at("started"),
                    .time = json.at("time"),
                    .every = json.at("every"),
                    .is_over = json.at("over"),
                    .phase = json.at("phase"),
                    .updates = json.at("updates"),
                    .updates_per_second = core::number_of(json.at("updates_per_second")),
                    .cpus_used = core::number_of(json.at("cpus_used")),
                    .cpus = json.at("cpus"),
                    .memory_bytes = json.at("memory_bytes"),
                    .device_bytes = json.at("device_bytes"),
                    .device_peak_bytes = json.value("device_peak_bytes", std::int64_t{0}),
                    .communication = core::number_of(json.at("communication")),
                    .data_wait = core::number_of(json.at("data_wait"))};
  for (const auto& loop : json.at("loops")) {
    status.loops.push_back({.title = loop.at("title"),
                            .done = loop.at("done"),
                            .total = loop.at("total"),
                            .per_second = core::number_of(loop.at("per_second"))});
  }
  if (json.contains("save")) {
    const auto& save = json.at("save");
    status.save = {.at = save.at("at"), .seconds = save.at("seconds"), .longest = save.at("longest")};
  }
  if (json.contains("deadline")) status.deadline = json.at("deadline").get<double>();
  if (json.contains("device")) {
    const auto& device = json.at("device");
    status.device_used_bytes = device.at("used_bytes");
    status.device_total_bytes = device.at("total_bytes");
    if (device.contains("busy")) status.device_busy = device.at("busy").get<double>();
  }
  status.rows = json.value("rows", "");
  if (json.contains("values")) {
    for (const auto& [name, value] : json.at("values").items())
      status.values.emplace_back(name, core::number_of(value));
  }
  return status;
}

}  // namespace

std::string to_row(RankStatus status) {
  auto text = text_of(json_of_status(status));
  while (text.size() >= row_bytes && !status.values.empty()) {
    status.values.pop_back();
    text = text_of(json_of_status(status));
  }
  if (text.size() >= row_bytes) {
    status.rows.clear();
    status.loops.clear();
    text = text_of(json_of_status(status));
  }
  text.resize(row_bytes - 1, ' ');
  return text + '\n';
}

std::optional<RankStatus> parse_status(std::string_view row) {
  const auto json = parsed(row);
  if (!json) return {};
  try {
    return read_status(*json);
  } catch (const Json::exception&) {
    return {};
  }
}

std::string to_row(const Session& session) {
  Json json = {
      {"run_id", session.run_id}, {"started", session.started}, {"world", session.world}, {"job", session.job}};
  if (session.resumed_after) json["resumed_after"] = *session.resumed_after;
  return text_of(json) + '\n';
}

std::optional<Session> parse_session(std::string_view row) {
  const auto json = parsed(row);
  if (!json) return {};
  try {
    Session session{.run_id = json->at("run_id"),
                    .started = json->at("started"),
                    .world = json->at("world"),
                    .job = json->at("job")};
    if (json->contains("resumed_after")) session.resumed_after = json->at("resumed_after").get<std::int64_t>();
    return session;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace hortator::observe
