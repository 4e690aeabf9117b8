#pragma once

#include <string>
#include <vector>

#include "tools/charts/canvas.hpp"
#include "tools/charts/chart_ticks.hpp"

namespace hortator::tools {

/// One curve.
struct Series {
  std::string label = "";  ///< in the legend; series of the same label share a colour and an entry
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> spread = {};  ///< half the length of each point's error bar; empty: no bars
  bool has_dots = false;
  bool has_line = true;
  bool dashed = false;
  double width = 1.6;              ///< of the line
  std::vector<double> marks = {};  ///< x values marked by a vertical line: restarts
};

struct Panel {
  std::string title = "";
  std::string x_label = "";  ///< with its unit
  std::string y_label = "";
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  bool from_zero = false;  ///< the y axis includes 0
  int y_ticks = 0;         ///< about as many; 0: by the height
  std::vector<Series> series = {};
};

struct ChartSize {
  double width = 900;
  double panel_height = 320;
};

/// Draws panels below each other, with one legend at the right. Texts never overlap.
void draw(const std::vector<Panel>& panels, const ChartSize& size, Canvas& canvas);
/// The height that draw() needs.
double chart_height(const std::vector<Panel>& panels, const ChartSize& size);

/// The chart as the content of a file; the ending of `name` chooses SVG, or PNG or PDF in a build with Cairo. Throws
/// UsageError for other endings, and for PNG and PDF in a build without Cairo.
std::string chart_file(const std::vector<Panel>& panels, const std::string& name, const ChartSize& size = {});

}  // namespace hortator::tools
