#include "tools/plot/raster.hpp"

#include <algorithm>
#include <cmath>

#include "formats/image/png_encoder.hpp"
#include "tools/plot/glyphs.hpp"

namespace hortator::tools {
namespace {

constexpr double scale = 2;

double distance(Place point, Place from, Place to) {
  const double dx = to.x - from.x;
  const double dy = to.y - from.y;
  const double length = dx * dx + dy * dy;
  const double along =
      length > 0 ? std::clamp(((point.x - from.x) * dx + (point.y - from.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(point.x - from.x - along * dx, point.y - from.y - along * dy);
}

Place scaled(Place place) { return {scale * place.x, scale * place.y}; }

/// The pieces of a line that are drawn.
std::vector<std::pair<Place, Place>> dashes(const std::vector<Place>& places) {
  constexpr double dash = 6;
  constexpr double gap = 4;
  std::vector<std::pair<Place, Place>> pieces;
  double phase = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const auto from = places[i - 1];
    const auto to = places[i];
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const auto at = [&](double s) {
      return Place{from.x + (to.x - from.x) * s / length, from.y + (to.y - from.y) * s / length};
    };
    for (double s = 0; s < length;) {
      const bool is_drawn = phase < dash;
      const double step = std::min(length - s, (is_drawn ? dash : dash + gap) - phase);
      if (is_drawn) pieces.emplace_back(at(s), at(s + step));
      s += step;
      phase += step;
      if (phase >= dash + gap - 1e-9) phase = 0;
      if (step <= 1e-9) phase = is_drawn ? dash : 0;
    }
  }
  return pieces;
}

}  // namespace

RasterCanvas::RasterCanvas(double width, double height)
    : width_(static_cast<std::int64_t>(std::ceil(scale * width))),
      height_(static_cast<std::int64_t>(std::ceil(scale * height))),
      pixels_(static_cast<std::size_t>(width_ * height_ * 3), 255) {}

void RasterCanvas::mix(std::int64_t x, std::int64_t y, Colour colour, double cover) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_ || cover <= 0) return;
  auto* pixel = &pixels_[static_cast<std::size_t>((y * width_ + x) * 3)];
  const std::uint8_t wanted[] = {colour.red, colour.green, colour.blue};
  for (int i = 0; i < 3; ++i)
    pixel[i] = static_cast<std::uint8_t>(std::lround(pixel[i] + (wanted[i] - pixel[i]) * std::min(cover, 1.0)));
}

// Pixels near the line, as far as it covers them.
void RasterCanvas::segment(Place from, Place to, double width, Colour colour) {
  const double reach = width / 2 + 1;
  const auto first_x = static_cast<std::int64_t>(std::floor(std::min(from.x, to.x) - reach));
  const auto last_x = static_cast<std::int64_t>(std::ceil(std::max(from.x, to.x) + reach));
  const auto first_y = static_cast<std::int64_t>(std::floor(std::min(from.y, to.y) - reach));
  const auto last_y = static_cast<std::int64_t>(std::ceil(std::max(from.y, to.y) + reach));
  for (auto y = std::max<std::int64_t>(first_y, 0); y <= std::min(last_y, height_ - 1); ++y) {
    for (auto x = std::max<std::int64_t>(first_x, 0); x <= std::min(last_x, width_ - 1); ++x) {
      const Place centre{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
      mix(x, y, colour, width / 2 + 0.5 - distance(centre, from, to));
    }
  }
}

void RasterCanvas::line(const std::vector<Place>& places, const Stroke& stroke) {
  if (stroke.dashed) {
    for (const auto& [from, to] : dashes(places))
      segment(scaled(from), scaled(to), scale * stroke.width, stroke.colour);
    return;
  }
  for (std::size_t i = 1; i < places.size(); ++i)
    segment(scaled(places[i - 1]), scaled(places[i]), scale * stroke.width, stroke.colour);
}

void RasterCanvas::box(Place corner, double width, double height, const Stroke& stroke) {
  const Place right{corner.x + width, corner.y};
  const Place below{corner.x, corner.y + height};
  const Place opposite{corner.x + width, corner.y + height};
  line({corner, right, opposite, below, corner}, stroke);
}

void RasterCanvas::dot(Place centre, double radius, Colour colour) {
  segment(scaled(centre), scaled(centre), 2 * scale * radius, colour);
}

void RasterCanvas::text(Place place, const std::string& words, const Lettering& lettering) {
  // A letter is five strokes wide and seven high; with the gap it takes the room that text_width() says.
  const double advance = scale * 0.6 * lettering.size;
  const double unit = advance / 6;
  const double length = scale * text_width(words, lettering.size);
  double at = lettering.align == Align::left ? 0 : lettering.align == Align::right ? -length : -length / 2;
  const auto origin = scaled(place);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if ((static_cast<unsigned char>(words[i]) & 0xC0U) == 0x80U) continue;
    for (const auto& [column, row] : dots_of(words[i])) {
      const double right = at + (column + 0.5) * unit;
      const double up = (glyph_rows - 1 - row + 0.5) * unit * 1.15;
      const Place centre =
          lettering.upwards ? Place{origin.x - up, origin.y - right} : Place{origin.x + right, origin.y - up};
      segment(centre, centre, unit * 1.1, lettering.colour);
    }
    at += advance;
  }
}

std::string RasterCanvas::png() const {
  return formats::encode_png(pixels_, static_cast<std::size_t>(width_), static_cast<std::size_t>(height_), 3);
}

}  // namespace hortator::tools
