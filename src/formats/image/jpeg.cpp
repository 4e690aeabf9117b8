#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>

// jpeglib.h needs size_t and FILE from before
#include <jerror.h>
#include <jpeglib.h>

#include "formats/image/image.hpp"

namespace hortator::formats {
namespace {

/// State shared with libjpeg's callbacks. libjpeg reports errors by longjmp, which skips destructors: callbacks, and
/// functions that call it after setjmp, must not have locals with destructors.
struct JpegSession {
  JpegSession() = default;
  ~JpegSession() { jpeg_destroy_decompress(&jpeg); }
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> fault{};
};

[[noreturn]] void on_error(j_common_ptr jpeg) {
  auto* session = static_cast<JpegSession*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, session->fault.data());
  std::longjmp(session->leave, 1);
}

// Warnings have negative levels. Missing or damaged image data, which libjpeg would fill with grey, is an error; other
// warnings are ignored, as by all readers.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const auto code = jpeg->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)
    on_error(jpeg);
}

bool read_head(JpegSession& session, std::span<const std::uint8_t> file, int channels) {
  if (setjmp(session.leave) != 0) return false;
  jpeg_create_decompress(&session.jpeg);
  jpeg_mem_src(&session.jpeg, file.data(), file.size());
  jpeg_read_header(&session.jpeg, TRUE);
  session.jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  return true;
}

bool read_rows(JpegSession& session, std::uint8_t* to, std::size_t row_bytes) {
  if (setjmp(session.leave) != 0) return false;
  jpeg_start_decompress(&session.jpeg);
  while (session.jpeg.output_scanline < session.jpeg.output_height) {
    JSAMPROW row = to + session.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&session.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&session.jpeg);
  return true;
}

bool is_for_print(J_COLOR_SPACE colours) { return colours == JCS_CMYK || colours == JCS_YCCK; }

}  // namespace

at::Tensor decode_jpeg(std::span<const std::uint8_t> file, int channels) {
  JpegSession session;
  session.jpeg.err = jpeg_std_error(&session.errors);
  session.jpeg.client_data = &session;
  session.errors.error_exit = on_error;
  session.errors.emit_message = on_message;

  if (!read_head(session, file, channels)) throw ImageFault(session.fault.data());
  if (is_for_print(session.jpeg.jpeg_color_space)) throw ImageFault("its colours are CMYK: convert it to RGB");
  auto image = make_image(session.jpeg.image_height, session.jpeg.image_width, channels);
  const auto row_bytes = static_cast<std::size_t>(image.size(1) * channels);
  if (!read_rows(session, image.mutable_data_ptr<std::uint8_t>(), row_bytes)) throw ImageFault(session.fault.data());
  return image;
}

}  // namespace hortator::formats
