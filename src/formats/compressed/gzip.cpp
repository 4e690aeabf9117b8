#include <zlib.h>

#include <algorithm>

#include "core/text/text.hpp"
#include "formats/compressed/decoder.hpp"

namespace hortator::formats {
namespace {

constexpr int only_gzip = 16;  // added to the window's bits

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() {
    if (inflateInit2(&stream_, MAX_WBITS + only_gzip) != Z_OK) throw CompressionFault("zlib cannot begin");
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  Progress decode(std::string_view in, std::span<char> out) override {
    if (!is_in_member_) {
      const auto padding = has_member_ ? std::min(in.find_first_not_of('\0'), in.size()) : 0;
      if (padding > 0 || in.empty()) return {.taken = padding};
      inflateReset(&stream_);
      is_in_member_ = true;
    }
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));  // not written
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      is_in_member_ = false;
      has_member_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw CompressionFault(text::concat("zlib reports ", stream_.msg != nullptr ? stream_.msg : zError(code)));
    }
    return {.taken = in.size() - stream_.avail_in, .given = out.size() - stream_.avail_out};
  }

  bool is_complete() const override { return !is_in_member_; }

 private:
  z_stream stream_ = {};
  bool is_in_member_ = false, has_member_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_gzip_decoder() { return std::make_unique<GzipDecoder>(); }

}  // namespace hortator::formats
