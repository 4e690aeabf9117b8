#include "observe/status/status_record.hpp"

#include "core/text/json.hpp"

namespace hortator::observe {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Each visit_*() lists the fields of one record once, in the order of the file; FieldWriter and FieldReader do the
// rest.
class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) {}

  template <typename T>
  void field(const char* name, const T& member) const {
    json_[name] = member;
  }
  /// Missing in rows of earlier releases.
  template <typename T>
  void new_field(const char* name, const T& member) const {
    json_[name] = member;
  }
  /// May be infinite or NaN.
  void number(const char* name, double member) const { json_[name] = core::json_of(member); }
  /// Left out when there is no value.
  template <typename T>
  void optional(const char* name, const std::optional<T>& member) const {
    if (member) json_[name] = *member;
  }

 private:
  Json& json_;
};

class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {}

  template <typename T>
  void field(const char* name, T& member) const {
    json_.at(name).get_to(member);
  }
  template <typename T>
  void new_field(const char* name, T& member) const {
    if (json_.contains(name)) field(name, member);
  }
  void number(const char* name, double& member) const { member = core::number_of(json_.at(name)); }
  template <typename T>
  void optional(const char* name, std::optional<T>& member) const {
    if (json_.contains(name)) member = json_.at(name).template get<T>();
  }

 private:
  const Json& json_;
};

template <typename AnyStatus, typename Visitor>
void visit_status(AnyStatus& status, const Visitor& visitor) {
  visitor.field("run_id", status.run_id);
  visitor.field("rank", status.rank);
  visitor.field("world", status.world);
  visitor.new_field("mesh", status.mesh);
  visitor.field("host", status.host);
  visitor.new_field("process", status.process);
  visitor.field("job", status.job);
  visitor.field("started", status.started);
  visitor.field("time", status.time);
  visitor.field("every", status.every);
  visitor.field("over", status.is_over);
  visitor.field("phase", status.phase);
  visitor.field("updates", status.updates);
  visitor.number("updates_per_second", status.updates_per_second);
  visitor.number("cpus_used", status.cpus_used);
  visitor.field("cpus", status.cpus);
  visitor.field("memory_bytes", status.memory_bytes);
  visitor.field("device_bytes", status.device_bytes);
  visitor.new_field("device_peak_bytes", status.device_peak_bytes);
  visitor.new_field("joules", status.joules);
  visitor.new_field("energy_source", status.energy_source);
  visitor.new_field("samples", status.samples);
  visitor.number("communication", status.communication);
  visitor.number("data_wait", status.data_wait);
}

template <typename AnyLoop, typename Visitor>
void visit_loop(AnyLoop& loop, const Visitor& visitor) {
  visitor.field("title", loop.title);
  visitor.field("done", loop.done);
  visitor.field("total", loop.total);
  visitor.number("per_second", loop.per_second);
}

template <typename AnySave, typename Visitor>
void visit_save(AnySave& save, const Visitor& visitor) {
  visitor.field("at", save.at);
  visitor.field("seconds", save.seconds);
  visitor.field("longest", save.longest);
}

template <typename AnyStatus, typename Visitor>
void visit_device(AnyStatus& status, const Visitor& visitor) {
  visitor.field("used_bytes", status.device_used_bytes);
  visitor.field("total_bytes", status.device_total_bytes);
  visitor.optional("busy", status.device_busy);
}

template <typename AnySession, typename Visitor>
void visit_session(AnySession& session, const Visitor& visitor) {
  visitor.field("run_id", session.run_id);
  visitor.field("started", session.started);
  visitor.field("world", session.world);
  visitor.field("job", session.job);
  visitor.optional("resumed_after", session.resumed_after);
}

Json json_of_status(const RankStatus& status) {
  Json json;
  visit_status(status, FieldWriter(json));
  json["loops"] = Json::array();
  for (const auto& loop : status.loops) visit_loop(loop, FieldWriter(json["loops"].emplace_back(Json::object())));
  if (status.save) visit_save(*status.save, FieldWriter(json["save"]));
  FieldWriter(json).optional("deadline", status.deadline);
  if (status.device_total_bytes > 0) visit_device(status, FieldWriter(json["device"]));
  if (!status.rows.empty()) json["rows"] = status.rows;
  if (!status.values.empty()) json["values"] = Json::object();
  for (const auto& [name, value] : status.values) json["values"][name] = core::json_of(value);
  return json;
}

template <typename Record>
std::optional<Record> parsed(std::string_view row, Record (*read)(const Json&)) {
  const auto json = core::parse_record<Json>(row);
  try {
    return json.is_object() ? std::optional(read(json)) : std::nullopt;
  } catch (const Json::exception&) {
    return {};
  }
}

Session read_session(const Json& json) {
  Session session;
  visit_session(session, FieldReader(json));
  return session;
}

RankStatus read_status(const Json& json) {
  RankStatus status;
  visit_status(status, FieldReader(json));
  for (const auto& loop : json.at("loops")) visit_loop(status.loops.emplace_back(), FieldReader(loop));
  if (json.contains("save")) visit_save(status.save.emplace(), FieldReader(json.at("save")));
  FieldReader(json).optional("deadline", status.deadline);
  if (json.contains("device")) visit_device(status, FieldReader(json.at("device")));
  FieldReader(json).new_field("rows", status.rows);
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

std::optional<RankStatus> parse_status(std::string_view row) { return parsed(row, read_status); }

std::string to_row(const Session& session) {
  Json json;
  visit_session(session, FieldWriter(json));
  return text_of(json) + '\n';
}

std::optional<Session> parse_session(std::string_view row) { return parsed(row, read_session); }

}  // namespace hortator::observe
