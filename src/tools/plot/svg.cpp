#include "tools/plot/svg.hpp"

#include "core/text/print.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

std::string number(double value) { return core::print("%.2f", value); }

std::string hex(Colour colour) { return core::print("#%02x%02x%02x", colour.red, colour.green, colour.blue); }

std::string stroke_of(const Stroke& stroke) {
  return text::concat("fill=\"none\" stroke=\"", hex(stroke.colour), "\" stroke-width=\"", number(stroke.width), '"',
                      stroke.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

std::string escaped(const std::string& words) {
  std::string safe;
  for (const char one : words) {
    switch (one) {
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
        safe += static_cast<unsigned char>(one) < 0x20 ? ' ' : one;
    }
  }
  return safe;
}

const char* anchor_of(Align align) {
  if (align == Align::left) return "start";
  return align == Align::centre ? "middle" : "end";
}

}  // namespace

// DejaVu Sans, Helvetica and Arial differ little: a letter is about as wide as 0.6 of its size.
double text_width(const std::string& words, double size) {
  double characters = 0;
  for (const char one : words) characters += (static_cast<unsigned char>(one) & 0xC0U) != 0x80U ? 1 : 0;
  return 0.6 * size * characters;
}

void SvgCanvas::line(const std::vector<Place>& places, const Stroke& stroke) {
  std::string points;
  for (const auto& place : places) points += number(place.x) + ',' + number(place.y) + ' ';
  shapes_ += text::concat("<polyline ", stroke_of(stroke), " stroke-linejoin=\"round\" points=\"", points, "\"/>\n");
}

void SvgCanvas::box(Place corner, double width, double height, const Stroke& stroke) {
  shapes_ += text::concat("<rect x=\"", number(corner.x), "\" y=\"", number(corner.y), "\" width=\"", number(width),
                          "\" height=\"", number(height), "\" ", stroke_of(stroke), "/>\n");
}

void SvgCanvas::dot(Place centre, double radius, Colour colour) {
  shapes_ += text::concat("<circle cx=\"", number(centre.x), "\" cy=\"", number(centre.y), "\" r=\"", number(radius),
                          "\" fill=\"", hex(colour), "\"/>\n");
}

void SvgCanvas::text(Place place, const std::string& words, const Lettering& lettering) {
  const auto turn = lettering.upwards
                        ? text::concat(" transform=\"rotate(-90 ", number(place.x), ' ', number(place.y), ")\"")
                        : std::string();
  shapes_ += text::concat("<text x=\"", number(place.x), "\" y=\"", number(place.y), "\" font-size=\"",
                          number(lettering.size), "\" fill=\"", hex(lettering.colour), "\" text-anchor=\"",
                          anchor_of(lettering.align), '"', turn, '>', escaped(words), "</text>\n");
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
