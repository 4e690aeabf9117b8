#include <hortator/error.hpp>

#include "formats/image/image.hpp"

namespace hortator::formats {

at::Tensor decode_png(std::span<const std::uint8_t>, int) {
  throw UsageError({.what = "This Hortator cannot read PNG images",
                    .why = "it was built where libpng was not found",
                    .hint = "install libpng-dev (Debian, Ubuntu) or libpng-devel (Rocky), configure and build again"});
}

}  // namespace hortator::formats
