#include <hortator/error.hpp>

#include "formats/image/image.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw UsageError({.what = what,
                    .why = "it was built where libpng was not found",
                    .hint = "install libpng-dev (Debian, Ubuntu) or libpng-devel (Rocky), configure and build again"});
}

}  // namespace

at::Tensor decode_png(std::span<const std::uint8_t>, int) { refuse("This Hortator cannot read PNG images"); }

std::string encode_png(std::span<const std::uint8_t>, std::size_t, std::size_t, int) {
  refuse("This Hortator cannot write PNG images");
}

}  // namespace hortator::formats
