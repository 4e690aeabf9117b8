#include "tools/charts/page.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"

namespace hortator::tools {
namespace {

using PanelJson = nlohmann::ordered_json;

// Before and after the data, and after the script.
constexpr std::array<const char*, 3> shared_text = {
#include "tools/charts/page.inc"
};

// Within a script element: no text of the data can end it.
std::string for_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

PanelJson numbers_of(const std::vector<double>& values) {
  auto json = PanelJson::array();
  for (const double value : values) json.push_back(core::json_of(page_number(value)));
  return json;
}

PanelJson series_of(const Series& series) {
  return {{"label", series.label},       {"x", series.x},
          {"y", numbers_of(series.y)},   {"spread", numbers_of(series.spread)},
          {"has_dots", series.has_dots}, {"has_line", series.has_line},
          {"is_dashed", series.dashed}};
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& data, const char* script) {
  return shared_text[0] + for_script(data.dump(-1, ' ', false, PanelJson::error_handler_t::replace)) + shared_text[1] +
         script + shared_text[2];
}

double page_number(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

nlohmann::ordered_json page_panels(const std::vector<Panel>& panels) {
  auto json = PanelJson::array();
  for (const auto& panel : panels) {
    auto series = PanelJson::array();
    for (const auto& one : panel.series) series.push_back(series_of(one));
    json.push_back({{"name", panel.title},
                    {"y_name", panel.y_label},
                    {"x_log", panel.x_scale == Scale::logarithmic},
                    {"y_log", panel.y_scale == Scale::logarithmic},
                    {"from_zero", panel.from_zero},
                    {"series", series}});
  }
  return json;
}

}  // namespace hortator::tools
