#include <hortator/error.hpp>

#include "formats/image/image.hpp"

namespace hortator::formats {

at::Tensor decode_jpeg(std::span<const std::uint8_t>, int) {
  throw UsageError(
      {.what = "This Hortator cannot read JPEG images",
       .why = "it was built where libjpeg was not found",
       .hint = "install libjpeg-dev (Debian, Ubuntu) or libjpeg-turbo-devel (Rocky), configure and build again"});
}

}  // namespace hortator::formats
