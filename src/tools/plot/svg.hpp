#pragma once

#include <string>

#include "tools/plot/canvas.hpp"

namespace hortator::tools {

/// A drawing as SVG.
class SvgCanvas final : public Canvas {
 public:
  SvgCanvas(double width, double height) : width_(width), height_(height) {}

  void line(const std::vector<Place>& places, const Stroke& stroke) override;
  void box(Place corner, double width, double height, const Stroke& stroke) override;
  void dot(Place centre, double radius, Colour colour) override;
  void text(Place place, const std::string& words, const Lettering& lettering) override;

  std::string file() const;

 private:
  double width_;
  double height_;
  std::string shapes_;
};

}  // namespace hortator::tools
