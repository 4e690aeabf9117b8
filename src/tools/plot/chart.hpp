#pragma once

#include <string>
#include <vector>

#include "tools/plot/canvas.hpp"
#include "tools/plot/chart_ticks.hpp"

namespace hortator::tools {

/// One curve.
struct Series {
  std::string label = "";  ///< in the legend; those of one name share a colour and a line there
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> spread = {};  ///< of each point, up and down; empty: none
  bool has_dots = false;
  bool has_line = true;
  bool dashed = false;
  std::vector<double> marks = {};  ///< places along x with a line across: restarts
};

struct Panel {
  std::string title = "";
  std::string x_label = "";  ///< with its unit
  std::string y_label = "";
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  bool from_zero = false;  ///< y begins at 0
  std::vector<Series> series = {};
};

struct ChartSize {
  double width = 900;
  double panel_height = 320;
};

/// Panels below each other, with one legend at the right: nothing is drawn over anything.
void draw(const std::vector<Panel>& panels, const ChartSize& size, Canvas& canvas);
/// How high that is.
double chart_height(const std::vector<Panel>& panels, const ChartSize& size);

/// The same as a file: PNG where its name ends so, else SVG. UsageError for any other name.
std::string chart_file(const std::vector<Panel>& panels, const std::string& name, const ChartSize& size = {});

}  // namespace hortator::tools
