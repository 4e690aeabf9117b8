#include "observe/status/measure.hpp"

#include <algorithm>
#include <array>

#include "core/text/json.hpp"

namespace hortator::observe {
namespace {

struct Peak {
  std::string_view device;  ///< how its name begins
  double flops;
};

// NVIDIA's data sheets, https://www.nvidia.com/en-us/data-center/: half of the rates "with sparsity". The names are
// those that the driver reports; the first match counts.
constexpr std::array peaks = {
    Peak{"Tesla V100-PCIE", 112e12},  //
    Peak{"Tesla V100-SXM2", 125e12},  //
    Peak{"Tesla T4", 65e12},          //
    Peak{"NVIDIA A100", 312e12},      //
    Peak{"NVIDIA A30", 165e12},       //
    Peak{"NVIDIA A40", 149.7e12},     //
    Peak{"NVIDIA L40S", 362e12},      //
    Peak{"NVIDIA H100 PCIe", 756e12}, Peak{"NVIDIA H100 NVL", 835e12}, Peak{"NVIDIA H100 80GB HBM3", 989e12},
    Peak{"NVIDIA H200 NVL", 835e12},  Peak{"NVIDIA H200", 989e12},     Peak{"NVIDIA GH200", 990e12},
};

}  // namespace

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
  visit("joules", measure.joules);
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
    visit_measure(measure, [&](const char* name, auto& member) {
      // Missing in files of earlier releases.
      if (json.contains(name) || std::string_view(name) != "joules") json.at(name).get_to(member);
    });
    return measure;
  } catch (const Json::exception&) {
    return {};
  }
}

std::optional<double> peak_flops(std::string_view device) {
  if (device.find(" MIG ") != std::string_view::npos) return {};  // a slice of a device; data sheets do not list it
  const auto* found = std::ranges::find_if(peaks, [&](const Peak& peak) { return device.starts_with(peak.device); });
  return found == peaks.end() ? std::nullopt : std::optional(found->flops);
}

}  // namespace hortator::observe
