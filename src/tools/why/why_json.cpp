#include "tools/why/why_json.hpp"

#include <nlohmann/json.hpp>

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(double time) { return time > 0 ? Json(time) : Json(); }

Json json_of(const FailureLink& link) {
  return {{"role", to_string(link.role)},
          {"ranks", link.ranks},
          {"host", or_null(link.host)},
          {"time", or_null(link.time)},
          {"text", link.text}};
}

Json json_of(const std::string& folder, const Diagnosis& diagnosis) {
  Json json = {{"folder", folder},
               {"state", diagnosis.state},
               {"decision", diagnosis.decision ? Json(to_string(*diagnosis.decision)) : Json()},
               {"rule", or_null(diagnosis.rule)},
               {"class", or_null(diagnosis.error_class)},
               {"reason", diagnosis.reason},
               {"rank", diagnosis.rank ? Json(*diagnosis.rank) : Json()},
               {"host", or_null(diagnosis.host)},
               {"place", or_null(diagnosis.place)},
               {"problem", or_null(diagnosis.problem)},
               {"step", diagnosis.step},
               {"step_tolerance", diagnosis.step_tolerance},
               {"time", or_null(diagnosis.time)},
               {"suspect_host", or_null(diagnosis.suspect_host)},
               {"chain", Json::array()}};
  for (const auto& link : diagnosis.chain) json["chain"].push_back(json_of(link));
  return json;
}

}  // namespace

std::string why_json(const std::vector<std::pair<std::string, Diagnosis>>& runs) {
  Json json = {{"schema_version", 1}, {"runs", Json::array()}};
  for (const auto& [folder, diagnosis] : runs) json["runs"].push_back(json_of(folder, diagnosis));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hortator::tools
