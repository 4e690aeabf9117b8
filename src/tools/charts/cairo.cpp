#include "tools/charts/canvas.hpp"

#include <cairo-pdf.h>
#include <cairo.h>

#include <array>
#include <cmath>
#include <hortator/error.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

constexpr double png_scale = 2;  // pixels for each unit of the drawing, so that plots are sharp on paper

struct SurfaceDestroyer {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using SurfacePointer = std::unique_ptr<cairo_surface_t, SurfaceDestroyer>;

struct ContextDestroyer {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using ContextPointer = std::unique_ptr<cairo_t, ContextDestroyer>;

// A cairo_write_func_t; no exception may pass through Cairo.
cairo_status_t append_bytes(void* file, const unsigned char* data, unsigned int size) noexcept {
  try {
    static_cast<std::string*>(file)->append(data, data + size);
    return CAIRO_STATUS_SUCCESS;
  } catch (...) {
    return CAIRO_STATUS_WRITE_ERROR;
  }
}

void check_status(cairo_status_t status, const std::string& file) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw Error({.what = text::concat(text::quote(file), " cannot be drawn"),
               .why = text::concat("Cairo reports: ", cairo_status_to_string(status)),
               .hint = "use a name that ends in .svg"});
}

// Cairo refuses a text that is not UTF-8, which the name of a folder need not be.
std::string valid_utf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

class CairoCanvas final : public Canvas {
 public:
  explicit CairoCanvas(cairo_t* context) : context_(context) {
    set_colour({255, 255, 255});
    cairo_paint(context_);
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
    cairo_select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  }

  void line(const std::vector<Point>& points, const Stroke& stroke) override {
    for (const auto& point : points) cairo_line_to(context_, point.x, point.y);
    draw_stroke(stroke);
  }

  void rectangle(Point corner, double width, double height, const Stroke& stroke) override {
    cairo_rectangle(context_, corner.x, corner.y, width, height);
    draw_stroke(stroke);
  }

  void dot(Point centre, double radius, Colour colour) override {
    set_colour(colour);
    cairo_arc(context_, centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
    cairo_fill(context_);
  }

  void text(Point point, const std::string& text, const TextStyle& style) override {
    const auto shown = valid_utf8(text);
    set_colour(style.colour);
    cairo_set_font_size(context_, style.size);
    cairo_text_extents_t extents{};
    cairo_text_extents(context_, shown.c_str(), &extents);
    const double before = style.align == Align::left     ? 0
                          : style.align == Align::centre ? extents.x_advance / 2
                                                         : extents.x_advance;
    cairo_save(context_);
    cairo_translate(context_, point.x, point.y);
    if (style.upwards) cairo_rotate(context_, -std::numbers::pi / 2);
    cairo_move_to(context_, -before, 0);
    cairo_show_text(context_, shown.c_str());
    cairo_restore(context_);
    cairo_new_path(context_);
  }

 private:
  void set_colour(Colour colour) {
    cairo_set_source_rgb(context_, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0);
  }

  void draw_stroke(const Stroke& stroke) {
    constexpr std::array<double, 2> dashes = {6, 4};
    set_colour(stroke.colour);
    cairo_set_line_width(context_, stroke.width);
    cairo_set_dash(context_, dashes.data(), stroke.dashed ? static_cast<int>(dashes.size()) : 0, 0);
    cairo_stroke(context_);
  }

  cairo_t* context_;
};

}  // namespace

bool has_cairo() { return true; }

std::string draw_with_cairo(const std::string& file, double width, double height,
                            const std::function<void(Canvas&)>& draw) {
  std::string content;
  const bool is_png = file.ends_with(".png");
  const SurfacePointer surface(is_png ? cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                                                   static_cast<int>(std::ceil(png_scale * width)),
                                                                   static_cast<int>(std::ceil(png_scale * height)))
                                      : cairo_pdf_surface_create_for_stream(append_bytes, &content, width, height));
  const ContextPointer context(cairo_create(surface.get()));
  if (is_png) cairo_scale(context.get(), png_scale, png_scale);
  CairoCanvas canvas(context.get());
  draw(canvas);
  check_status(cairo_status(context.get()), file);
  if (is_png) check_status(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &content), file);
  cairo_surface_finish(surface.get());
  check_status(cairo_surface_status(surface.get()), file);
  return content;
}

}  // namespace hortator::tools
