#pragma once

#include <string>

#include "tools/scale/scale_report.hpp"

namespace hortator::tools {

/// A study as one HTML file that needs no server and no other file: curves with zoom, the table of sizes, the model and
/// the plan. `now`: seconds since 1970. Pure.
std::string scale_page(const Study& study, double now);

}  // namespace hortator::tools
