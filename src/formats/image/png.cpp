#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <hortator/error.hpp>
#include <vector>

#include "core/text/text.hpp"
#include "formats/image/image.hpp"

namespace hortator::formats {
namespace {

/// State shared with libpng's callbacks. libpng reports errors by longjmp, which skips destructors: callbacks, and
/// functions that call it after setjmp, must not have locals with destructors.
struct PngSession {
  PngSession() = default;
  ~PngSession() { png_destroy_read_struct(&png, &info, nullptr); }
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;

  std::span<const std::uint8_t> file = {};
  std::size_t done = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::array<char, 200> fault{};
};

void on_error(png_structp png, png_const_charp message) {
  auto* session = static_cast<PngSession*>(png_get_error_ptr(png));
  std::snprintf(session->fault.data(), session->fault.size(), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t bytes) {
  auto* session = static_cast<PngSession*>(png_get_io_ptr(png));
  if (bytes > session->file.size() - session->done) png_error(png, "it ends too early");
  std::memcpy(to, session->file.data() + session->done, bytes);
  session->done += bytes;
}

bool read_head(PngSession& session, int channels) {
  if (setjmp(png_jmpbuf(session.png)) != 0) return false;
  constexpr int silently = 1;
  constexpr int usual_weights = -1;
  png_set_read_fn(session.png, &session, read_bytes);
  png_read_info(session.png, session.info);
  png_set_scale_16(session.png);
  png_set_expand(session.png);
  png_set_strip_alpha(session.png);
  if (channels == 1) {
    png_set_rgb_to_gray_fixed(session.png, silently, usual_weights, usual_weights);
  } else {
    png_set_gray_to_rgb(session.png);
  }
  png_set_interlace_handling(session.png);
  png_read_update_info(session.png, session.info);
  return true;
}

bool read_rows(PngSession& session, png_bytepp rows) {
  if (setjmp(png_jmpbuf(session.png)) != 0) return false;
  png_read_image(session.png, rows);
  png_read_end(session.png, nullptr);
  return true;
}

void check_pixels(std::size_t bytes, std::size_t width, std::size_t height, int channels) {
  constexpr std::size_t max_side = 1'000'000;  // libpng's own limit
  const bool has_size = width > 0 && height > 0 && width <= max_side && height <= max_side;
  const bool is_known = channels == 1 || channels == 3;
  if (has_size && is_known && bytes == width * height * static_cast<std::size_t>(channels)) return;
  throw UsageError(
      {.what = text::concat(text::count(static_cast<long long>(bytes), "byte"), " do not match an image of ", width,
                            " x ", height, " pixels with ", channels, " channels"),
       .hint = "pass 1 or 3 bytes a pixel, and at most 1000000 rows and columns"});
}

}  // namespace

at::Tensor decode_png(std::span<const std::uint8_t> file, int channels) {
  PngSession session;
  session.file = file;
  session.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, on_error, on_warning);
  if (session.png != nullptr) session.info = png_create_info_struct(session.png);
  if (session.info == nullptr) throw std::bad_alloc();

  if (!read_head(session, channels)) throw ImageFault(session.fault.data());
  const std::int64_t height = png_get_image_height(session.png, session.info);
  const std::int64_t width = png_get_image_width(session.png, session.info);
  auto image = make_image(height, width, channels);
  const auto row_bytes = png_get_rowbytes(session.png, session.info);
  if (row_bytes != static_cast<std::size_t>(width * channels)) throw ImageFault("its colour type is unknown");

  std::vector<png_bytep> rows;
  auto* to = image.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < height; ++i) rows.push_back(to + static_cast<std::size_t>(i) * row_bytes);
  if (!read_rows(session, rows.data())) throw ImageFault(session.fault.data());
  return image;
}

std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels) {
  check_pixels(pixels.size(), width, height, channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  constexpr int keep_depth = 0;
  constexpr png_int_32 rows_are_adjacent = 0;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, keep_depth, pixels.data(), rows_are_adjacent, nullptr) ==
      0)
    throw UsageError({.what = text::concat("libpng could not encode an image of ", width, " x ", height, " pixels"),
                      .why = image.message});
  file.resize(bytes);
  return file;
}

}  // namespace hortator::formats
