#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/charts/chart.hpp"

namespace hortator::tools {

/// One HTML file that needs no server and no other file: the data, what all pages share (style, tiles, curves with
/// zoom, tables), and `script`, which shows `data` with it. Pure.
std::string html_page(const nlohmann::ordered_json& data, const char* script);

/// The value with four digits: more are less than a pixel.
double page_number(double value);

/// Panels as the script's `show_panels` reads them.
nlohmann::ordered_json page_panels(const std::vector<Panel>& panels);

}  // namespace hortator::tools
