#include "tools/charts/canvas.hpp"

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

namespace hortator::tools {
namespace {

std::string number(double value) { return text::print("%.2f", value); }

std::string hex(Colour colour) { return text::print("#%02x%02x%02x", colour.red, colour.green, colour.blue); }

std::string stroke_of(const Stroke& stroke) {
  return text::concat(R"(fill="none" stroke=")", hex(stroke.colour), "\" stroke-width=\"", number(stroke.width), '"',
                      stroke.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

const char* anchor_of(Align align) {
  if (align == Align::left) return "start";
  return align == Align::centre ? "middle" : "end";
}

}  // namespace

// DejaVu Sans, Helvetica and Arial differ little: a character is about 0.6 times as wide as the font size.
double text_width(const std::string& text, double size) {
  double characters = 0;
  for (const char c : text) characters += text::continues_character(c) ? 0 : 1;
  return 0.6 * size * characters;
}

void SvgCanvas::line(const std::vector<Point>& points, const Stroke& stroke) {
  std::string list;
  for (const auto& point : points) list += number(point.x) + ',' + number(point.y) + ' ';
  shapes_ += text::concat("<polyline ", stroke_of(stroke), R"( stroke-linejoin="round" points=")", list, "\"/>\n");
}

void SvgCanvas::rectangle(Point corner, double width, double height, const Stroke& stroke) {
  shapes_ += text::concat("<rect x=\"", number(corner.x), "\" y=\"", number(corner.y), "\" width=\"", number(width),
                          "\" height=\"", number(height), "\" ", stroke_of(stroke), "/>\n");
}

void SvgCanvas::dot(Point centre, double radius, Colour colour) {
  shapes_ += text::concat("<circle cx=\"", number(centre.x), "\" cy=\"", number(centre.y), "\" r=\"", number(radius),
                          "\" fill=\"", hex(colour), "\"/>\n");
}

void SvgCanvas::text(Point point, const std::string& shown, const TextStyle& style) {
  const auto turn = style.upwards
                        ? text::concat(" transform=\"rotate(-90 ", number(point.x), ' ', number(point.y), ")\"")
                        : std::string();
  shapes_ += text::concat("<text x=\"", number(point.x), "\" y=\"", number(point.y), "\" font-size=\"",
                          number(style.size), "\" fill=\"", hex(style.colour), "\" text-anchor=\"",
                          anchor_of(style.align), '"', turn, '>', escaped(shown), "</text>\n");
}

std::string SvgCanvas::file() const {
  const auto size = text::concat("width=\"", number(width_), "\" height=\"", number(height_), "\" viewBox=\"0 0 ",
                                 number(width_), ' ', number(height_), '"');
  return text::concat("<svg xmlns=\"http://www.w3.org/2000/svg\" ", size,
                      " font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
                      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                      shapes_, "</svg>\n");
}

}  // namespace hortator::tools
