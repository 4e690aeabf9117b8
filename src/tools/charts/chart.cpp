#include "tools/charts/chart.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "tools/charts/canvas.hpp"
#include "tools/charts/chart_frame.hpp"

namespace hortator::tools {
namespace {

constexpr int max_label_width = 28;

// Distinguishable with red-green colour blindness (after Okabe and Ito).
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
      if (std::ranges::find(names, series.label) == names.end()) names.push_back(series.label);
    }
  }
  return names;
}

bool has_marks(const std::vector<Panel>& panels) {
  return std::ranges::any_of(panels, [](const Panel& panel) {
    return std::ranges::any_of(panel.series, [](const Series& series) { return !series.marks.empty(); });
  });
}

Colour colour_of(const Names& names, const std::string& name) {
  const auto index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  return palette[index % palette.size()];
}

std::string short_label(const std::string& label) {
  return core::width_of(label) <= max_label_width ? label : core::cut(label, max_label_width - 3) + "...";
}

double legend_width(const Names& names) {
  double widest = text_width("restart", text_size);
  for (const auto& name : names) widest = std::max(widest, text_width(short_label(name), text_size));
  return widest + 24 + 2 * margin;
}

void draw_legend(Canvas& canvas, const std::vector<Panel>& panels, const Names& names, Point corner) {
  double y = corner.y + margin + title_size + 10 + text_size;
  const auto entry = [&](const std::string& label, const Stroke& stroke, bool is_dot = false) {
    const double middle = y - text_size * 0.35;
    if (is_dot) {
      canvas.dot({corner.x + 9, middle}, dot_radius, stroke.colour);
    } else {
      canvas.line({{corner.x, middle}, {corner.x + 18, middle}}, stroke);
    }
    canvas.text({corner.x + 24, y}, label, {.size = text_size, .colour = ink});
    y += text_size + 8;
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
  const double legend = 2 * margin + title_size + (text_size + 8) * static_cast<double>(names_in(panels).size() + 2);
  return std::max(size.panel_height * static_cast<double>(panels.size()), legend);
}

void draw(const std::vector<Panel>& panels, const ChartSize& size, Canvas& canvas) {
  const auto names = names_in(panels);
  const double width = size.width - legend_width(names);
  std::vector<ChartFrame> frames;
  double widest = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    frames.emplace_back(panels[i], Point{0, size.panel_height * static_cast<double>(i)}, width, size.panel_height);
    widest = std::max(widest, frames.back().y_label_width());
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    auto& frame = frames[i];
    frame.set_y_label_width(widest);
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
  if (name.ends_with(".png") || name.ends_with(".pdf"))
    return draw_with_cairo(name, size.width, height, [&](Canvas& canvas) { draw(panels, size, canvas); });
  throw UsageError(
      {.what = text::concat("--output: expected a file name that ends in .svg, .png or .pdf, got ", text::quote(name)),
       .hint = "hortator plot runs/digits -o digits.svg"});
}

}  // namespace hortator::tools
