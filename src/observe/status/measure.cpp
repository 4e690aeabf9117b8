#include "observe/status/measure.hpp"

#include "core/record_json.hpp"

namespace hortator::observe {

using Json = nlohmann::ordered_json;

namespace {

// Calls visit(name, member) for each field, in the order of the file.
template <typename AnyMeasure, typename Visit>
void visit_measure(AnyMeasure& measure, const Visit& visit) {
  visit("identity", measure.identity);
  visit("ranks", measure.ranks);
  visit("nodes", measure.nodes);
  visit("cpus", measure.cpus);
  visit("updates", measure.updates);
  visit("seconds_per_update", measure.seconds_per_update);
  visit("seconds", measure.seconds);
  visit("cpu_seconds", measure.cpu_seconds);
  visit("communicating", measure.communicating);
  visit("waiting_for_data", measure.waiting_for_data);
  visit("gradient_bytes", measure.gradient_bytes);
  visit("device", measure.device);
  visit("flops_per_update", measure.flops_per_update);
}

}  // namespace

std::string to_json(const Measure& measure) {
  Json json;
  visit_measure(measure, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::optional<Measure> parse_measure(const std::string& text) {
  const auto json = core::parse_record<Json>(text);
  try {
    Measure measure;
    visit_measure(measure, [&](const char* name, auto& member) { json.at(name).get_to(member); });
    return measure;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace hortator::observe
