#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/plot/canvas.hpp"

namespace hortator::tools {

/// A drawing as pixels, four for each of the drawing's (so that it is sharp on paper and on fine screens), lines and
/// letters with soft edges. Letters outside of ASCII are a box.
class RasterCanvas final : public Canvas {
 public:
  RasterCanvas(double width, double height);

  void line(const std::vector<Place>& places, const Stroke& stroke) override;
  void box(Place corner, double width, double height, const Stroke& stroke) override;
  void dot(Place centre, double radius, Colour colour) override;
  void text(Place place, const std::string& words, const Lettering& lettering) override;

  std::string png() const;

 private:
  void segment(Place from, Place to, double width, Colour colour);
  void mix(std::int64_t x, std::int64_t y, Colour colour, double cover);

  std::int64_t width_;
  std::int64_t height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace hortator::tools
