#pragma once

#include <string>

#include "tools/plot/canvas.hpp"

namespace hortator::tools {

/// Draws SVG.
class SvgCanvas final : public Canvas {
 public:
  SvgCanvas(double width, double height) : width_(width), height_(height) {}

  void line(const std::vector<Point>& points, const Stroke& stroke) override;
  void rectangle(Point corner, double width, double height, const Stroke& stroke) override;
  void dot(Point centre, double radius, Colour colour) override;
  void text(Point point, const std::string& text, const TextStyle& style) override;

  /// The content of the SVG file.
  std::string file() const;

 private:
  double width_;
  double height_;
  std::string shapes_;
};

}  // namespace hortator::tools
