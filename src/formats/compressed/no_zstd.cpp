#include <hortator/error.hpp>

#include "formats/compressed/decoder.hpp"

namespace hortator::formats {

std::unique_ptr<Decoder> make_zstd_decoder() {
  throw UsageError(
      {.what = "This Hortator cannot read zstd files",
       .why = "it was built where libzstd was not found",
       .hint = "install libzstd-dev (Debian, Ubuntu) or libzstd-devel (Rocky), configure and build again"});
}

}  // namespace hortator::formats
