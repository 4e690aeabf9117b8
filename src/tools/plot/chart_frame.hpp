#pragma once

#include "tools/plot/chart.hpp"

namespace hortator::tools {

/// One panel of a chart: its place, what its axes show, and the drawing of both.
class ChartFrame {
 public:
  ChartFrame(const Panel& panel, Place corner, double width, double height);

  double y_label_width() const { return y_label_width_; }
  /// Frames that stand over each other begin at the same place, whatever their labels.
  void make_room(double y_label_width);

  void draw_axes(Canvas& canvas) const;
  void draw_series(Canvas& canvas, const Series& series, Colour colour) const;
  void draw_border(Canvas& canvas) const;

 private:
  void draw_spread(Canvas& canvas, const Series& series, std::size_t i, Colour colour) const;
  Place place(Place value) const;
  bool shows(double x) const { return x >= x_.least && x <= x_.greatest; }
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
