#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hortator::tools {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

struct Point {
  double x = 0;
  double y = 0;  ///< downwards
};

enum class Align { left, centre, right };

struct Stroke {
  Colour colour = {};
  double width = 1;
  bool dashed = false;
};

struct TextStyle {
  Align align = Align::left;
  double size = 12;  ///< height of a line
  Colour colour = {};
  bool upwards = false;  ///< rotated by 90 degrees: reads from bottom to top
};

/// A surface to draw on. Coordinates are in pixels from the upper left corner.
class Canvas {
 public:
  Canvas() = default;
  virtual ~Canvas() = default;
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  virtual void line(const std::vector<Point>& points, const Stroke& stroke) = 0;
  virtual void rectangle(Point corner, double width, double height, const Stroke& stroke) = 0;
  virtual void dot(Point centre, double radius, Colour colour) = 0;
  /// `point` is on the baseline of `text`.
  virtual void text(Point point, const std::string& text, const TextStyle& style) = 0;
};

/// Approximate width of a text: charts reserve that much room for it.
double text_width(const std::string& text, double size);

}  // namespace hortator::tools
