#include "tools/scale/scale_page.hpp"

#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "tools/charts/page.hpp"

namespace hortator::tools {
namespace {

using StudyJson = nlohmann::ordered_json;

constexpr const char* scale_script =
#include "tools/scale/page.inc"
    ;

StudyJson tile(const std::string& name, const std::string& value, const std::string& note = "") {
  return {{"name", name}, {"value", value}, {"note", note}};
}

/// The largest size, beside the smallest.
StudyJson tiles_of(const Study& study) {
  const auto& largest = study.sizes.back();
  const ScaleModel model(study.setting, study.sizes);
  auto tiles = StudyJson::array();
  tiles.push_back(tile("largest size", text::count(largest.ranks, "rank"),
                       largest.nodes > 1 ? text::count(largest.nodes, "node") : ""));
  tiles.push_back(tile("speed-up", text::print("%.3g", speed_up(study, largest.seconds, largest.ranks)),
                       "relative to " + text::count(study.sizes.front().ranks, "rank")));
  tiles.push_back(tile("efficiency", text::print("%.0f %%", 100 * efficiency(study, largest.seconds, largest.ranks)),
                       "share of the ideal"));
  if (const auto use = use_of_peak(study, largest))
    tiles.push_back(tile("MFU", text::print("%.3g %%", 100 * *use), study.device));
  tiles.push_back(
      tile("communication", text::print("%.0f %%", 100 * model.overlap()), "overlaps with compute (fitted)"));
  return tiles;
}

StudyJson plan_rows(const Study& study) {
  auto rows = StudyJson::array();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, value});
  };
  add("command", text::join(study.plan.command, " "));
  add("runs of each size", std::to_string(study.plan.repeats));
  add("cores of a node", std::to_string(study.plan.cores_per_node));
  add("device of a rank", study.device.empty() ? "CPU" : study.device);
  add("peak rate of a rank", study.peak_flops ? text::print("%.4g FLOP/s", *study.peak_flops) : "");
  add("versions", study.identity);
  return rows;
}

}  // namespace

std::string scale_page(const Study& study, double now) {
  const StudyJson data = {{"title", text::join(study.plan.command, " ")},
                          {"growth", to_string(study.plan.growth)},
                          {"time", now},
                          {"tiles", tiles_of(study)},
                          {"panels", page_panels(scale_panels(study))},
                          {"sizes", scale_rows(study)},
                          {"model", scale_notes(study)},
                          {"plan", plan_rows(study)}};
  return html_page(data, scale_script);
}

}  // namespace hortator::tools
