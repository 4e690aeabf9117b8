#include <hortator/error.hpp>

#include "formats/image/png_encoder.hpp"

namespace hortator::formats {

std::string encode_png(std::span<const std::uint8_t>, std::size_t, std::size_t, int) {
  throw UsageError({.what = "This Hortator cannot write PNG images",
                    .why = "it was built where libpng was not found",
                    .hint = "install libpng-dev (Debian, Ubuntu) or libpng-devel (Rocky), configure and build again"});
}

}  // namespace hortator::formats
