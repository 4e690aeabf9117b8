#include "runtime/identity/ending_record.hpp"

#include <algorithm>

#include "core/text/json.hpp"

namespace hortator::runtime {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, member) for each field, in the order of the row.
template <typename AnyRecord, typename Visit>
void visit_ending(AnyRecord& record, const Visit& visit) {
  visit("run_id", record.run_id);
  visit("reporter", record.reporter);
  visit("rank", record.rank);
  visit("world", record.world);
  visit("on_host", record.on_host);
  visit("host", record.host);
  visit("pid", record.pid);
  visit("time", record.time);
  visit("kind", record.kind);
  visit("type", record.type);
  visit("signal", record.signal);
  visit("updates", record.updates);
  visit("exit_code", record.exit_code);
  visit("where", record.where);
  visit("problem", record.problem);
}

std::string text_of(const EndingRecord& record) {
  Json json;
  visit_ending(record, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Cut bytes of a character are replaced when the text becomes JSON.
void cut(std::string& text, std::size_t bytes) {
  if (text.size() > bytes) text.resize(bytes);
}

}  // namespace

std::string to_row(EndingRecord record) {
  cut(record.run_id, 120);
  cut(record.host, 80);
  cut(record.type, 80);
  cut(record.where, 160);
  auto text = text_of(record);
  while (text.size() >= ending_bytes) {
    // A character can take six bytes in JSON.
    const auto excess = std::max<std::size_t>((text.size() - ending_bytes) / 6, 1);
    if (record.problem.empty()) {
      record.where.clear();
      record.type.clear();
      cut(record.host, record.host.size() / 2);
      cut(record.run_id, record.run_id.size() / 2);
    }
    cut(record.problem, record.problem.size() - std::min(record.problem.size(), excess));
    text = text_of(record);
  }
  text.resize(ending_bytes - 1, ' ');
  return text + '\n';
}

std::optional<EndingRecord> parse_ending(std::string_view row) {
  if (row.empty() || row.front() != '{') return {};
  const auto json = core::parse_record<Json>(row);
  try {
    EndingRecord record;
    visit_ending(record, [&](const char* name, auto& member) { json.at(name).get_to(member); });
    return record;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace hortator::runtime
