#pragma once

#include <cstdint>
#include <functional>
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

/// Whether this build can draw PNG and PDF files.
bool has_cairo();

/// The content of a PNG (where `file` ends in .png) or PDF file, drawn by `draw`. Throws UsageError in a build without
/// Cairo, and Error when Cairo reports one.
std::string draw_with_cairo(const std::string& file, double width, double height,
                            const std::function<void(Canvas&)>& draw);

}  // namespace hortator::tools
