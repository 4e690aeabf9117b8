#include "observe/status/restart_record.hpp"

#include "core/text/json.hpp"

namespace hortator::observe {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, member) for each field, in the order of the file.
template <typename AnyRecord, typename Visit>
void visit_restart(AnyRecord& record, const Visit& visit) {
  visit("time", record.time);
  visit("launch", record.launch);
  visit("run_id", record.run_id);
  visit("attempt", record.attempt);
  visit("exit_code", record.exit_code);
  visit("was_signalled", record.was_signalled);
  visit("decision", record.decision);
  visit("rule", record.rule);
  visit("class", record.error_class);
  visit("reason", record.reason);
  visit("rank", record.rank);
  visit("host", record.host);
  visit("problem", record.problem);
  visit("step", record.step);
  visit("step_tolerance", record.step_tolerance);
  visit("memory_checkpoint", record.memory_checkpoint);
  visit("signature", record.signature);
  visit("is_restarted", record.is_restarted);
  visit("delay", record.delay);
  visit("refused", record.refused);
  visit("left_out", record.left_out);
  visit("kept", record.kept);
  visit("report", record.report);
}

}  // namespace

std::string to_row(const RestartRecord& record) {
  Json json;
  visit_restart(record, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::optional<RestartRecord> parse_restart(std::string_view row) {
  const auto json = core::parse_record<Json>(row);
  if (!json.is_object()) return {};
  try {
    RestartRecord record;
    visit_restart(record, [&](const char* name, auto& member) {
      if (json.contains(name)) json.at(name).get_to(member);
    });
    return record;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace hortator::observe
