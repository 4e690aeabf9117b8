#include "observe/status/measure.hpp"

#include "core/record_json.hpp"

namespace hortator::observe {

using Json = nlohmann::ordered_json;

std::string to_json(const Measure& measure) {
  const Json json = {{"identity", measure.identity},
                     {"ranks", measure.ranks},
                     {"nodes", measure.nodes},
                     {"cpus", measure.cpus},
                     {"updates", measure.updates},
                     {"seconds_per_update", measure.seconds_per_update},
                     {"seconds", measure.seconds},
                     {"cpu_seconds", measure.cpu_seconds},
                     {"communicating", measure.communicating},
                     {"waiting_for_data", measure.waiting_for_data},
                     {"gradient_bytes", measure.gradient_bytes},
                     {"device", measure.device},
                     {"flops_per_update", measure.flops_per_update}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::optional<Measure> parse_measure(const std::string& text) {
  const auto json = core::parse_record<Json>(text);
  try {
    return Measure{.identity = json.at("identity"),
                   .ranks = json.at("ranks"),
                   .nodes = json.at("nodes"),
                   .cpus = json.at("cpus"),
                   .updates = json.at("updates"),
                   .seconds_per_update = json.at("seconds_per_update"),
                   .seconds = json.at("seconds"),
                   .cpu_seconds = json.at("cpu_seconds"),
                   .communicating = json.at("communicating"),
                   .waiting_for_data = json.at("waiting_for_data"),
                   .gradient_bytes = json.at("gradient_bytes"),
                   .device = json.at("device"),
                   .flops_per_update = json.at("flops_per_update")};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace hortator::observe
