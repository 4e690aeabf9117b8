#include <hortator/error.hpp>

#include "formats/compressed/decoder.hpp"

namespace hortator::formats {

std::unique_ptr<Decoder> make_gzip_decoder() {
  throw UsageError({.what = "This Hortator cannot read gzip files",
                    .why = "it was built where zlib was not found",
                    .hint = "install zlib1g-dev (Debian, Ubuntu) or zlib-devel (Rocky), configure and build again"});
}

}  // namespace hortator::formats
