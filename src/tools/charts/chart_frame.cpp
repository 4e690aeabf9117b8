#include "tools/charts/chart_frame.hpp"

#include <algorithm>
#include <cmath>

namespace hortator::tools {
namespace {

constexpr double tick_length = 4;
constexpr Colour faint = {225, 225, 225};

}  // namespace

ChartFrame::ChartFrame(const Panel& panel, Point corner, double width, double height)
    : panel_(panel),
      left_(corner.x + margin + text_size + 8 + tick_length + 4),
      right_(corner.x + width - margin),
      top_(corner.y + margin + title_size + 10),
      bottom_(corner.y + height - margin - 2 * text_size - 12) {
  std::vector<double> ys;
  for (const auto& series : panel.series) {
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      const double spread = series.spread.empty() ? 0 : series.spread[i];
      ys.insert(ys.end(), {series.y[i] - spread, series.y[i] + spread});
    }
  }
  if (panel.from_zero) ys.push_back(0);
  y_ = axis_of(ys, panel.y_scale, panel.y_ticks > 0 ? panel.y_ticks : static_cast<int>(height / 60));
  const auto labels = labels_of(y_);
  for (const auto& label : labels) y_label_width_ = std::max(y_label_width_, text_width(label, text_size));
}

void ChartFrame::set_y_label_width(double y_label_width) {
  y_label_width_ = y_label_width;
  left_ += y_label_width;
  std::vector<double> xs;
  for (const auto& series : panel_.series) xs.insert(xs.end(), series.x.begin(), series.x.end());
  x_ = axis_of(xs, panel_.x_scale, static_cast<int>((right_ - left_) / 90));
}

void ChartFrame::draw_axes(Canvas& canvas) const {
  canvas.text({(left_ + right_) / 2, top_ - 10}, panel_.title,
              {.align = Align::centre, .size = title_size, .colour = ink});
  const auto x_labels = labels_of(x_);
  for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
    const double x = position_of({x_.ticks[i], y_.min}).x;
    canvas.line({{x, top_}, {x, bottom_}}, {.colour = faint});
    canvas.line({{x, bottom_}, {x, bottom_ + tick_length}}, {.colour = ink});
    canvas.text({x, bottom_ + tick_length + text_size + 1}, x_labels[i],
                {.align = Align::centre, .size = text_size, .colour = ink});
  }
  const auto y_labels = labels_of(y_);
  for (std::size_t i = 0; i < y_.ticks.size(); ++i) {
    const double y = position_of({x_.min, y_.ticks[i]}).y;
    canvas.line({{left_, y}, {right_, y}}, {.colour = faint});
    canvas.line({{left_ - tick_length, y}, {left_, y}}, {.colour = ink});
    canvas.text({left_ - tick_length - 4, y + text_size * 0.35}, y_labels[i],
                {.align = Align::right, .size = text_size, .colour = ink});
  }
  canvas.text({(left_ + right_) / 2, bottom_ + tick_length + 2 * text_size + 8}, panel_.x_label,
              {.align = Align::centre, .size = text_size, .colour = ink});
  canvas.text({left_ - tick_length - 4 - y_label_width_ - 8, (top_ + bottom_) / 2}, panel_.y_label,
              {.align = Align::centre, .size = text_size, .colour = ink, .upwards = true});
}

void ChartFrame::draw_series(Canvas& canvas, const Series& series, Colour colour) const {
  for (const double mark : series.marks) {
    if (!shows(mark)) continue;
    const double x = position_of({mark, y_.min}).x;
    canvas.line({{x, top_}, {x, bottom_}}, {.colour = mark_colour, .dashed = true});
  }
  std::vector<Point> segment;
  const auto draw_segment = [&] {
    if (series.has_line && segment.size() > 1)
      canvas.line(segment, {.colour = colour, .width = series.width, .dashed = series.dashed});
    segment.clear();
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!can_show(series.x[i], series.y[i])) {
      draw_segment();
      continue;
    }
    const auto at = position_of({series.x[i], series.y[i]});
    segment.push_back(at);
    if (series.has_dots) canvas.dot(at, dot_radius, colour);
    if (!series.spread.empty() && series.spread[i] > 0) draw_spread(canvas, series, i, colour);
  }
  draw_segment();
}

void ChartFrame::draw_border(Canvas& canvas) const {
  canvas.rectangle({left_, top_}, right_ - left_, bottom_ - top_, {.colour = ink});
}

void ChartFrame::draw_spread(Canvas& canvas, const Series& series, std::size_t i, Colour colour) const {
  const auto above = position_of({series.x[i], series.y[i] + series.spread[i]});
  const auto below = position_of({series.x[i], series.y[i] - series.spread[i]});
  canvas.line({above, below}, {.colour = colour, .width = 1.2});
  for (const auto& end : {above, below})
    canvas.line({{end.x - 4, end.y}, {end.x + 4, end.y}}, {.colour = colour, .width = 1.2});
}

Point ChartFrame::position_of(Point value) const {
  return {left_ + (right_ - left_) * x_.fraction_of(value.x), bottom_ - (bottom_ - top_) * y_.fraction_of(value.y)};
}

bool ChartFrame::can_show(double x, double y) const {
  return std::isfinite(x) && std::isfinite(y) && (x_.scale == Scale::linear || x > 0) &&
         (y_.scale == Scale::linear || y > 0);
}

}  // namespace hortator::tools
