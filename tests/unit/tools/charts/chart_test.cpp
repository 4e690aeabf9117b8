#include "tools/charts/chart.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <limits>
#include <set>

#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "tools/charts/canvas.hpp"
#include "tools/plot/pipeline_times.hpp"

using namespace hortator::tools;

namespace {

/// A text and the rectangle that it covers.
struct TextBox {
  std::string text;
  double left, top, right, bottom;
};

/// Records the extent of everything that is drawn.
class RecordingCanvas final : public Canvas {
 public:
  void line(const std::vector<Point>& points, const Stroke& /*stroke*/) override {
    for (const auto& point : points) record(point.x, point.y);
  }
  void rectangle(Point corner, double width, double height, const Stroke& /*stroke*/) override {
    record(corner.x, corner.y);
    record(corner.x + width, corner.y + height);
  }
  void dot(Point centre, double /*radius*/, Colour /*colour*/) override { record(centre.x, centre.y); }
  void text(Point point, const std::string& text, const TextStyle& style) override {
    const double length = text_width(text, style.size);
    const double before = style.align == Align::left ? 0 : style.align == Align::centre ? length / 2 : length;
    const double up = 0.8 * style.size;
    const double down = 0.2 * style.size;
    texts.push_back(style.upwards
                        ? TextBox{text, point.x - up, point.y - (length - before), point.x + down, point.y + before}
                        : TextBox{text, point.x - before, point.y - up, point.x - before + length, point.y + down});
  }

  std::vector<TextBox> texts;
  double right = 0;
  double bottom = 0;
  bool is_finite = true;

 private:
  void record(double x, double y) {
    is_finite = is_finite && std::isfinite(x) && std::isfinite(y) && x >= 0 && y >= 0;
    right = std::max(right, x);
    bottom = std::max(bottom, y);
  }
};

bool overlap(const TextBox& a, const TextBox& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

std::vector<Panel> two_panels(double scale) {
  Panel first{.title = "loss", .x_label = "step", .y_label = "loss"};
  Panel second{.title = "rate", .x_label = "step", .y_label = "steps / s", .from_zero = true};
  for (int run = 0; run < 9; ++run) {
    Series series{.label = "a run with a name that is rather long, number " + std::to_string(run), .marks = {30}};
    for (int i = 0; i < 100; ++i) {
      series.x.push_back(i * 1000.0);
      series.y.push_back(scale * (run + 1) / (i + 1));
    }
    first.series.push_back(series);
    second.series.push_back(series);
  }
  return {first, second};
}

}  // namespace

TEST_CASE("texts of a chart do not overlap and lie within it") {
  for (const double scale : {1.0, 1e-7, 1e12}) {
    const auto panels = two_panels(scale);
    const ChartSize size;
    RecordingCanvas canvas;
    draw(panels, size, canvas);
    CHECK(canvas.is_finite);
    CHECK(canvas.right <= size.width);
    CHECK(canvas.bottom <= chart_height(panels, size));
    for (std::size_t i = 0; i < canvas.texts.size(); ++i) {
      const auto& box = canvas.texts[i];
      INFO(box.text << " of scale " << scale);
      CHECK(box.left >= 0);
      CHECK(box.top >= 0);
      CHECK(box.right <= size.width);
      CHECK(box.bottom <= chart_height(panels, size));
      for (std::size_t j = 0; j < i; ++j) {
        INFO(canvas.texts[j].text);
        CHECK_FALSE(overlap(box, canvas.texts[j]));
      }
    }
  }
}

TEST_CASE("ticks are round numbers within the axis with distinct labels") {
  struct Range {
    double min, max;
  };
  for (const auto& [min, max] : {Range{0, 1}, Range{0.1, 0.1}, Range{-3, 17}, Range{1e-9, 3e-9}, Range{0, 0},
                                 Range{1e6, 1.00001e6}, Range{12345, 9.9e9}, Range{-1e-3, 1e-3}, Range{1e-8, 10},
                                 Range{0.1, std::nextafter(0.1, 1)}, Range{1e17, std::nextafter(1e17, 2e17)}}) {
    for (const auto scale : {Scale::linear, Scale::logarithmic}) {
      if (scale == Scale::logarithmic && min <= 0) continue;
      const auto axis = axis_of({min, max}, scale, 5);
      INFO(min << " to " << max);
      CHECK(axis.min <= min);
      CHECK(axis.max >= max);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 14);
      const auto labels = labels_of(axis);
      CHECK(std::set<std::string>(labels.begin(), labels.end()).size() == labels.size());
      for (const auto& label : labels) CHECK(label.size() <= 12);
      CHECK(axis.fraction_of(axis.min) == 0);
      CHECK(axis.fraction_of(axis.max) == Approx(1));
    }
  }
  using Labels = std::vector<std::string>;
  CHECK(labels_of({.ticks = {0, 5000, 10000}}) == Labels{"0", "5k", "10k"});
  CHECK(labels_of({.ticks = {0, 0.5, 1}}) == Labels{"0", "0.5", "1.0"});
  CHECK(labels_of({.scale = Scale::logarithmic, .ticks = {1e-8, 1e-4, 0.0625, 1, 16, 2e4}}) ==
        Labels{"1e-8", "0.0001", "0.0625", "1", "16", "20k"});
  CHECK(axis_of({1, 2, 4, 8}, Scale::logarithmic, 8).ticks == std::vector<double>{1, 2, 4, 8});
}

TEST_CASE("values that cannot be drawn leave gaps in a curve") {
  const auto infinity = std::numeric_limits<double>::infinity();
  Panel panel{.title = "t", .y_scale = Scale::logarithmic};
  panel.series = {{.label = "a", .x = {1, 2, 3, 4, 5}, .y = {1, std::nan(""), infinity, 0, 2}}};
  RecordingCanvas canvas;
  draw({panel}, {}, canvas);
  CHECK(canvas.is_finite);
  panel.series = {{.label = "empty"}};
  draw({panel}, {}, canvas);
  CHECK(canvas.is_finite);
}

TEST_CASE("the ending of the file name chooses the chart format") {
  const auto panels = two_panels(1);
  const auto svg = chart_file(panels, "a.svg");
  CHECK_THAT(svg, StartsWith("<svg xmlns=") && ContainsSubstring(">steps / s</text>") && ContainsSubstring("</svg>"));
  CHECK_THAT(svg, ContainsSubstring(">restart</text>"));
  CHECK_THROWS_WITH(chart_file(panels, "a.jpg"), ContainsSubstring("ends in .svg, .png or .pdf, got 'a.jpg'"));
  auto odd = panels;
  odd.front().title = "a < b & \"c\"";
  CHECK_THAT(chart_file(odd, "a.svg"), ContainsSubstring("a &lt; b &amp; \"c\""));
}

TEST_CASE("PNG and PDF charts are drawn by Cairo, and refused in a build without it") {
  auto panels = two_panels(1);
  panels.front().title = "not UTF-8: \xe9";  // the name of a folder may be so
  if (!has_cairo()) {
    for (const auto* name : {"a.png", "a.pdf"}) {
      CHECK_THROWS_WITH(chart_file(panels, name),
                        ContainsSubstring(std::string("--output: '") + name + "' needs Cairo") &&
                            ContainsSubstring("use .svg, or build with libcairo2-dev"));
    }
    return;
  }
  const auto png = chart_file(panels, "a.png");
  CHECK(png.substr(1, 3) == "PNG");
  CHECK(png.size() > 5000);
  const auto pdf = chart_file(panels, "a.pdf");
  CHECK_THAT(pdf, StartsWith("%PDF-"));
  CHECK(pdf.size() > 5000);
}

TEST_CASE("times of a pipeline are drawn beside the plan, with the share of idle time") {
  const auto file = std::filesystem::temp_directory_path() / ("pipeline_times_" + std::to_string(::getpid()));
  const auto row = [](const char* times, int rank, const char* action, double begin, double end) {
    return hortator::text::concat(R"({"times":")", times, R"(","rank":)", rank, R"(,"action":")", action,
                                  R"(","stage":0,"micro_batch":0,"begin":)", begin, R"(,"end":)", end, "}\n");
  };
  std::ofstream(file) << row("planned", 0, "forward", 0, 1) << row("planned", 1, "forward", 1, 2)
                      << row("measured", 0, "forward", 0, 1) << row("measured", 1, "backward", 1, 4);
  const auto panels = panels_of_times(file);
  REQUIRE(panels.size() == 2);
  CHECK(panels[0].title == "planned: 2000.0 ms, 50.0 % idle");
  CHECK(panels[1].title == "measured: 4000.0 ms, 50.0 % idle");
  CHECK(panels[1].series.at(1).label == "backward");
  CHECK(panels[1].series.at(1).x == std::vector<double>{1000, 4000});
  CHECK(panels[1].series.at(1).y == std::vector<double>{1, 1});
  std::ofstream(file) << "loss 3\n";
  CHECK_THROWS_WITH(panels_of_times(file), ContainsSubstring("has no times of a pipeline"));
  std::filesystem::remove(file);
}
