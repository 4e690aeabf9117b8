#include "report/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "report/column.hpp"
#include "report/raster.hpp"
#include "report/svg.hpp"

namespace hortator::report {
namespace {

constexpr double letters = 12;
constexpr double title_letters = 14;
constexpr double margin = 14;
constexpr double dot_radius = 3.2;
constexpr double tick_length = 4;
constexpr int longest_label = 28;

constexpr Colour ink = {40, 40, 40};
constexpr Colour faint = {225, 225, 225};
constexpr Colour mark_colour = {120, 120, 120};
// Told apart by people who do not see red and green as different (after Okabe and Ito).
constexpr std::array<Colour, 8> palette = {{{0, 114, 178},
                                            {213, 94, 0},
                                            {0, 158, 115},
                                            {204, 121, 167},
                                            {86, 180, 233},
                                            {150, 110, 0},
                                            {0, 0, 0},
                                            {230, 159, 0}}};

using Names = std::vector<std::string>;

Names names_in(const std::vector<Panel>& panels) {
  Names names;
  for (const auto& panel : panels) {
    for (const auto& series : panel.series) {
      if (std::find(names.begin(), names.end(), series.label) == names.end()) names.push_back(series.label);
    }
  }
  return names;
}

bool has_marks(const std::vector<Panel>& panels) {
  return std::any_of(panels.begin(), panels.end(), [](const Panel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(), [](const Series& one) { return !one.marks.empty(); });
  });
}

Colour colour_of(const Names& names, const std::string& name) {
  const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  return palette[place % palette.size()];
}

std::string short_label(const std::string& label) {
  return width_of(label) <= longest_label ? label : cut(label, longest_label - 3) + "...";
}

double legend_width(const Names& names) {
  double widest = text_width("restart", letters);
  for (const auto& name : names) widest = std::max(widest, text_width(short_label(name), letters));
  return widest + 24 + 2 * margin;
}

/// One panel's place, and what its axes show.
class Frame {
 public:
  Frame(const Panel& panel, Place corner, double width, double height)
      : panel_(panel),
        left_(corner.x + margin + letters + 8 + tick_length + 4),
        right_(corner.x + width - margin),
        top_(corner.y + margin + title_letters + 10),
        bottom_(corner.y + height - margin - 2 * letters - 12) {
    std::vector<double> ys;
    for (const auto& series : panel.series) {
      for (std::size_t i = 0; i < series.y.size(); ++i) {
        const double spread = series.spread.empty() ? 0 : series.spread[i];
        ys.insert(ys.end(), {series.y[i] - spread, series.y[i] + spread});
      }
    }
    if (panel.from_zero) ys.push_back(0);
    y_ = axis_of(ys, panel.y_scale, static_cast<int>(height / 60));
    const auto labels = labels_of(y_);
    for (const auto& label : labels) y_label_width_ = std::max(y_label_width_, text_width(label, letters));
  }

  double y_label_width() const { return y_label_width_; }

  /// Frames that stand over each other begin at the same place, whatever their labels.
  void make_room(double y_label_width) {
    y_label_width_ = y_label_width;
    left_ += y_label_width;
    std::vector<double> xs;
    for (const auto& series : panel_.series) xs.insert(xs.end(), series.x.begin(), series.x.end());
    x_ = axis_of(xs, panel_.x_scale, static_cast<int>((right_ - left_) / 90));
  }

  void draw_axes(Canvas& canvas) const {
    canvas.text({(left_ + right_) / 2, top_ - 10}, panel_.title,
                {.align = Align::centre, .size = title_letters, .colour = ink});
    const auto x_labels = labels_of(x_);
    for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
      const double x = place({x_.ticks[i], y_.least}).x;
      canvas.line({{x, top_}, {x, bottom_}}, {.colour = faint});
      canvas.line({{x, bottom_}, {x, bottom_ + tick_length}}, {.colour = ink});
      canvas.text({x, bottom_ + tick_length + letters + 1}, x_labels[i],
                  {.align = Align::centre, .size = letters, .colour = ink});
    }
    const auto y_labels = labels_of(y_);
    for (std::size_t i = 0; i < y_.ticks.size(); ++i) {
      const double y = place({x_.least, y_.ticks[i]}).y;
      canvas.line({{left_, y}, {right_, y}}, {.colour = faint});
      canvas.line({{left_ - tick_length, y}, {left_, y}}, {.colour = ink});
      canvas.text({left_ - tick_length - 4, y + letters * 0.35}, y_labels[i],
                  {.align = Align::right, .size = letters, .colour = ink});
    }
    canvas.text({(left_ + right_) / 2, bottom_ + tick_length + 2 * letters + 8}, panel_.x_label,
                {.align = Align::centre, .size = letters, .colour = ink});
    canvas.text({left_ - tick_length - 4 - y_label_width_ - 8, (top_ + bottom_) / 2}, panel_.y_label,
                {.align = Align::centre, .size = letters, .colour = ink, .upwards = true});
  }

  void draw_series(Canvas& canvas, const Series& series, Colour colour) const {
    for (const double mark : series.marks) {
      if (!shows(mark)) continue;
      const double x = place({mark, y_.least}).x;
      canvas.line({{x, top_}, {x, bottom_}}, {.colour = mark_colour, .dashed = true});
    }
    std::vector<Place> stretch;
    const auto draw_stretch = [&] {
      if (series.has_line && stretch.size() > 1)
        canvas.line(stretch, {.colour = colour, .width = 1.6, .dashed = series.dashed});
      stretch.clear();
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!can_show(series.x[i], series.y[i])) {
        draw_stretch();
        continue;
      }
      const auto at = place({series.x[i], series.y[i]});
      stretch.push_back(at);
      if (series.has_dots) canvas.dot(at, dot_radius, colour);
      if (!series.spread.empty() && series.spread[i] > 0) draw_spread(canvas, series, i, colour);
    }
    draw_stretch();
  }

  void draw_border(Canvas& canvas) const { canvas.box({left_, top_}, right_ - left_, bottom_ - top_, {.colour = ink}); }

 private:
  void draw_spread(Canvas& canvas, const Series& series, std::size_t i, Colour colour) const {
    const auto above = place({series.x[i], series.y[i] + series.spread[i]});
    const auto below = place({series.x[i], series.y[i] - series.spread[i]});
    canvas.line({above, below}, {.colour = colour, .width = 1.2});
    for (const auto& end : {above, below})
      canvas.line({{end.x - 4, end.y}, {end.x + 4, end.y}}, {.colour = colour, .width = 1.2});
  }

  Place place(Place value) const {
    return {left_ + (right_ - left_) * x_.place_of(value.x), bottom_ - (bottom_ - top_) * y_.place_of(value.y)};
  }
  bool shows(double x) const { return x >= x_.least && x <= x_.greatest; }
  bool can_show(double x, double y) const {
    return std::isfinite(x) && std::isfinite(y) && (x_.scale == Scale::linear || x > 0) &&
           (y_.scale == Scale::linear || y > 0);
  }

  const Panel& panel_;
  Axis x_;
  Axis y_;
  double y_label_width_ = 0;
  double left_;
  double right_;
  double top_;
  double bottom_;
};

void draw_legend(Canvas& canvas, const std::vector<Panel>& panels, const Names& names, Place corner) {
  double y = corner.y + margin + title_letters + 10 + letters;
  const auto entry = [&](const std::string& label, const Stroke& stroke, bool is_dot = false) {
    const double middle = y - letters * 0.35;
    if (is_dot) {
      canvas.dot({corner.x + 9, middle}, dot_radius, stroke.colour);
    } else {
      canvas.line({{corner.x, middle}, {corner.x + 18, middle}}, stroke);
    }
    canvas.text({corner.x + 24, y}, label, {.size = letters, .colour = ink});
    y += letters + 8;
  };
  for (const auto& name : names) {
    bool dashed = false;
    bool has_line = false;
    for (const auto& panel : panels) {
      for (const auto& series : panel.series) {
        dashed |= series.label == name && series.dashed;
        has_line |= series.label == name && series.has_line;
      }
    }
    entry(short_label(name), {.colour = colour_of(names, name), .width = 2, .dashed = dashed}, !has_line);
  }
  if (has_marks(panels)) entry("restart", {.colour = mark_colour, .dashed = true});
}

}  // namespace

double chart_height(const std::vector<Panel>& panels, const ChartSize& size) {
  const double legend = 2 * margin + title_letters + (letters + 8) * static_cast<double>(names_in(panels).size() + 2);
  return std::max(size.panel_height * static_cast<double>(panels.size()), legend);
}

void draw(const std::vector<Panel>& panels, const ChartSize& size, Canvas& canvas) {
  const auto names = names_in(panels);
  const double width = size.width - legend_width(names);
  std::vector<Frame> frames;
  double widest = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    frames.emplace_back(panels[i], Place{0, size.panel_height * static_cast<double>(i)}, width, size.panel_height);
    widest = std::max(widest, frames.back().y_label_width());
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    auto& frame = frames[i];
    frame.make_room(widest);
    frame.draw_axes(canvas);
    for (const auto& series : panels[i].series) frame.draw_series(canvas, series, colour_of(names, series.label));
    frame.draw_border(canvas);
  }
  draw_legend(canvas, panels, names, {width + margin, 0});
}

std::string chart_file(const std::vector<Panel>& panels, const std::string& name, const ChartSize& size) {
  const double height = chart_height(panels, size);
  if (name.ends_with(".svg")) {
    SvgCanvas canvas(size.width, height);
    draw(panels, size, canvas);
    return canvas.file();
  }
  if (name.ends_with(".png")) {
    RasterCanvas canvas(size.width, height);
    draw(panels, size, canvas);
    return canvas.png();
  }
  throw UsageError({.what = text::quote(name) + " is no name of a picture", .hint = "end it in .svg or .png"});
}

}  // namespace hortator::report
