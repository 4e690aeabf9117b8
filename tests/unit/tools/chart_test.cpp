#include "tools/plot/chart.hpp"

#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <set>

#include "support/catch.hpp"
#include "tools/plot/glyphs.hpp"

using namespace hortator::tools;

namespace {

/// Where words were put.
struct Box {
  std::string words;
  double left, top, right, bottom;
};

/// Notes the places of all that is drawn.
class NotingCanvas final : public Canvas {
 public:
  void line(const std::vector<Place>& places, const Stroke& /*stroke*/) override {
    for (const auto& place : places) note(place.x, place.y);
  }
  void box(Place corner, double width, double height, const Stroke& /*stroke*/) override {
    note(corner.x, corner.y);
    note(corner.x + width, corner.y + height);
  }
  void dot(Place centre, double /*radius*/, Colour /*colour*/) override { note(centre.x, centre.y); }
  void text(Place place, const std::string& words, const Lettering& lettering) override {
    const double length = text_width(words, lettering.size);
    const double before = lettering.align == Align::left ? 0 : lettering.align == Align::centre ? length / 2 : length;
    const double up = 0.8 * lettering.size;
    const double down = 0.2 * lettering.size;
    texts.push_back(lettering.upwards
                        ? Box{words, place.x - up, place.y - (length - before), place.x + down, place.y + before}
                        : Box{words, place.x - before, place.y - up, place.x - before + length, place.y + down});
  }

  std::vector<Box> texts;
  double right = 0;
  double bottom = 0;
  bool is_finite = true;

 private:
  void note(double x, double y) {
    is_finite = is_finite && std::isfinite(x) && std::isfinite(y) && x >= 0 && y >= 0;
    right = std::max(right, x);
    bottom = std::max(bottom, y);
  }
};

bool overlap(const Box& a, const Box& b) {
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

TEST_CASE("no words lie over others, and all lie within the picture") {
  for (const double scale : {1.0, 1e-7, 1e12}) {
    const auto panels = two_panels(scale);
    const ChartSize size;
    NotingCanvas canvas;
    draw(panels, size, canvas);
    CHECK(canvas.is_finite);
    CHECK(canvas.right <= size.width);
    CHECK(canvas.bottom <= chart_height(panels, size));
    for (std::size_t i = 0; i < canvas.texts.size(); ++i) {
      const auto& one = canvas.texts[i];
      INFO(one.words << " of scale " << scale);
      CHECK(one.left >= 0);
      CHECK(one.top >= 0);
      CHECK(one.right <= size.width);
      CHECK(one.bottom <= chart_height(panels, size));
      for (std::size_t j = 0; j < i; ++j) {
        INFO(canvas.texts[j].words);
        CHECK_FALSE(overlap(one, canvas.texts[j]));
      }
    }
  }
}

TEST_CASE("ticks are round, within the axis, and told apart by their labels") {
  struct Range {
    double least, greatest;
  };
  for (const auto& [least, greatest] :
       {Range{0, 1}, Range{0.1, 0.1}, Range{-3, 17}, Range{1e-9, 3e-9}, Range{0, 0}, Range{1e6, 1.00001e6},
        Range{12345, 9.9e9}, Range{-1e-3, 1e-3}, Range{1e-8, 10}}) {
    for (const auto scale : {Scale::linear, Scale::logarithmic}) {
      if (scale == Scale::logarithmic && least <= 0) continue;
      const auto axis = axis_of({least, greatest}, scale, 5);
      INFO(least << " to " << greatest);
      CHECK(axis.least <= least);
      CHECK(axis.greatest >= greatest);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 14);
      const auto labels = labels_of(axis);
      CHECK(std::set<std::string>(labels.begin(), labels.end()).size() == labels.size());
      for (const auto& label : labels) CHECK(label.size() <= 12);
      CHECK(axis.place_of(axis.least) == 0);
      CHECK(axis.place_of(axis.greatest) == Approx(1));
    }
  }
  using Labels = std::vector<std::string>;
  CHECK(labels_of({.ticks = {0, 5000, 10000}}) == Labels{"0", "5k", "10k"});
  CHECK(labels_of({.ticks = {0, 0.5, 1}}) == Labels{"0", "0.5", "1.0"});
  CHECK(labels_of({.scale = Scale::logarithmic, .ticks = {1e-8, 1e-4, 0.0625, 1, 16, 2e4}}) ==
        Labels{"1e-8", "0.0001", "0.0625", "1", "16", "20k"});
  CHECK(axis_of({1, 2, 4, 8}, Scale::logarithmic, 8).ticks == std::vector<double>{1, 2, 4, 8});
}

TEST_CASE("numbers that cannot be drawn are holes in a curve") {
  const auto infinity = std::numeric_limits<double>::infinity();
  Panel panel{.title = "t", .y_scale = Scale::logarithmic};
  panel.series = {{.label = "a", .x = {1, 2, 3, 4, 5}, .y = {1, std::nan(""), infinity, 0, 2}}};
  NotingCanvas canvas;
  draw({panel}, {}, canvas);
  CHECK(canvas.is_finite);
  panel.series = {{.label = "empty"}};
  draw({panel}, {}, canvas);
  CHECK(canvas.is_finite);
}

TEST_CASE("a picture is SVG or PNG by its name") {
  const auto panels = two_panels(1);
  const auto svg = chart_file(panels, "a.svg");
  CHECK_THAT(svg, StartsWith("<svg xmlns=") && ContainsSubstring(">steps / s</text>") && ContainsSubstring("</svg>"));
  CHECK_THAT(svg, ContainsSubstring(">restart</text>"));
  const auto png = chart_file(panels, "a.png");
  CHECK(png.substr(1, 3) == "PNG");
  CHECK(png.size() > 5000);
  CHECK_THROWS_WITH(chart_file(panels, "a.pdf"), ContainsSubstring("'a.pdf' is no name of a picture"));
  auto odd = panels;
  odd.front().title = "a < b & \"c\"";
  CHECK_THAT(chart_file(odd, "a.svg"), ContainsSubstring("a &lt; b &amp; \"c\""));
}

TEST_CASE("every letter of ASCII has a form of its own") {
  std::set<std::vector<std::pair<int, int>>> forms;
  for (int c = 32; c < 127; ++c) forms.insert(dots_of(static_cast<char>(c)));
  CHECK(forms.size() == 95);
  CHECK(dots_of('\xc3') == dots_of('\x01'));
}
