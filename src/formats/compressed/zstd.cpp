#include <zstd.h>

#include "core/text/text.hpp"
#include "formats/compressed/decoder.hpp"

namespace hortator::formats {
namespace {

/// The library refuses windows above 128 MiB, which only `zstd --long` and `--ultra` write.
class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() {
    if (!context_) throw CompressionFault("zstd cannot begin");
  }

  Progress decode(std::string_view in, std::span<char> out) override {
    ZSTD_inBuffer input{.src = in.data(), .size = in.size(), .pos = 0};
    ZSTD_outBuffer output{.dst = out.data(), .size = out.size(), .pos = 0};
    const auto expected = ZSTD_decompressStream(context_.get(), &output, &input);
    if (ZSTD_isError(expected) != 0) throw CompressionFault(text::concat("zstd reports ", ZSTD_getErrorName(expected)));
    if (input.pos > 0 || output.pos > 0) is_complete_ = expected == 0;
    return {.taken = input.pos, .given = output.pos};
  }

  bool is_complete() const override { return is_complete_; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  bool is_complete_ = true;
};

}  // namespace

std::unique_ptr<Decoder> make_zstd_decoder() { return std::make_unique<ZstdDecoder>(); }

}  // namespace hortator::formats
