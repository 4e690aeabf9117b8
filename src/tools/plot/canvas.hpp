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

struct Place {
  double x = 0;
  double y = 0;  ///< downwards
};

enum class Align { left, centre, right };

struct Stroke {
  Colour colour = {};
  double width = 1;
  bool dashed = false;
};

struct Lettering {
  Align align = Align::left;
  double size = 12;  ///< height of a line
  Colour colour = {};
  bool upwards = false;  ///< read from below
};

/// Where a drawing is made: in pixels from the upper left corner.
class Canvas {
 public:
  Canvas() = default;
  virtual ~Canvas() = default;
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  virtual void line(const std::vector<Place>& places, const Stroke& stroke) = 0;
  virtual void box(Place corner, double width, double height, const Stroke& stroke) = 0;
  virtual void dot(Place centre, double radius, Colour colour) = 0;
  /// `place` is on the line that letters stand on.
  virtual void text(Place place, const std::string& words, const Lettering& lettering) = 0;
};

/// How wide words are, about: charts leave room for them.
double text_width(const std::string& words, double size);

}  // namespace hortator::tools
