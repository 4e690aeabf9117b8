#pragma once

#include "tools/charts/canvas.hpp"
#include "tools/charts/chart.hpp"

/// The style of all charts, in pixels.
namespace hortator::tools {

inline constexpr double text_size = 12;
inline constexpr double title_size = 14;
inline constexpr double margin = 14;
inline constexpr double dot_radius = 3.2;

inline constexpr Colour ink = {40, 40, 40};
inline constexpr Colour mark_colour = {120, 120, 120};

/// One panel of a chart: lays out and draws its axes and its series.
class ChartFrame {
 public:
  ChartFrame(const Panel& panel, Point corner, double width, double height);

  double y_label_width() const { return y_label_width_; }
  /// Call it once, with the widest y label of all panels, before drawing: the panels' left borders line up.
  void set_y_label_width(double y_label_width);

  void draw_axes(Canvas& canvas) const;
  void draw_series(Canvas& canvas, const Series& series, Colour colour) const;
  void draw_border(Canvas& canvas) const;

 private:
  void draw_spread(Canvas& canvas, const Series& series, std::size_t i, Colour colour) const;
  Point position_of(Point value) const;
  bool shows(double x) const { return x >= x_.min && x <= x_.max; }
  bool can_show(double x, double y) const;

  const Panel& panel_;
  Axis x_;
  Axis y_;
  double y_label_width_ = 0;
  double left_;
  double right_;
  double top_;
  double bottom_;
};

}  // namespace hortator::tools
