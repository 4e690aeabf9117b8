#include "formats/image/png_encoder.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

using Bytes = std::string;

std::uint32_t crc32(const Bytes& bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      auto value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320U ^ (value >> 1) : value >> 1;
      entries[i] = value;
    }
    return entries;
  }();
  std::uint32_t state = ~0U;
  for (const char byte : bytes) state = table[(state ^ static_cast<unsigned char>(byte)) & 255] ^ (state >> 8);
  return ~state;
}

std::uint32_t adler32(const Bytes& bytes) {
  constexpr std::uint32_t modulus = 65521;
  std::uint32_t low = 1;
  std::uint32_t high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<unsigned char>(byte)) % modulus;
    high = (high + low) % modulus;
  }
  return high << 16 | low;
}

Bytes big_endian(std::uint32_t value) {
  Bytes bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

/// Deflate's stream of bits: numbers lowest bit first, codes highest bit first.
class Bits {
 public:
  void number(std::uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i) put(value >> i & 1);
  }
  void code(std::uint32_t value, int bits) {
    for (int i = bits - 1; i >= 0; --i) put(value >> i & 1);
  }
  Bytes finish() {
    while (filled_ != 0) put(0);
    return std::move(bytes_);
  }

 private:
  void put(std::uint32_t bit) {
    current_ |= bit << filled_;
    if (++filled_ < 8) return;
    bytes_ += static_cast<char>(current_);
    current_ = 0;
    filled_ = 0;
  }

  Bytes bytes_;
  std::uint32_t current_ = 0;
  int filled_ = 0;
};

// The code that deflate knows without being told.
void put_symbol(Bits& bits, std::uint32_t symbol) {
  if (symbol < 144) return bits.code(0x30 + symbol, 8);
  if (symbol < 256) return bits.code(0x190 + symbol - 144, 9);
  if (symbol < 280) return bits.code(symbol - 256, 7);
  bits.code(0xc0 + symbol - 280, 8);
}

/// "The byte before, `length` times": length from 3 to 258.
void put_repeat(Bits& bits, std::uint32_t length) {
  struct Class {
    std::uint32_t symbol, first;
    int extra_bits;
  };
  static constexpr std::array<Class, 29> classes = {
      {{257, 3, 0},   {258, 4, 0},   {259, 5, 0},   {260, 6, 0},   {261, 7, 0},  {262, 8, 0},
       {263, 9, 0},   {264, 10, 0},  {265, 11, 1},  {266, 13, 1},  {267, 15, 1}, {268, 17, 1},
       {269, 19, 2},  {270, 23, 2},  {271, 27, 2},  {272, 31, 2},  {273, 35, 3}, {274, 43, 3},
       {275, 51, 3},  {276, 59, 3},  {277, 67, 4},  {278, 83, 4},  {279, 99, 4}, {280, 115, 4},
       {281, 131, 5}, {282, 163, 5}, {283, 195, 5}, {284, 227, 5}, {285, 258, 0}}};
  const auto after = std::upper_bound(classes.begin(), classes.end(), length,
                                      [](std::uint32_t value, const Class& one) { return value < one.first; });
  const auto& found = *(after - 1);
  put_symbol(bits, found.symbol);
  bits.number(length - found.first, found.extra_bits);
  constexpr std::uint32_t distance_one = 0;
  bits.code(distance_one, 5);
}

// What drawings have are runs of equal bytes, once each row is told by its difference from the one above.
Bytes deflate(const Bytes& bytes) {
  constexpr std::size_t shortest = 3;
  constexpr std::size_t longest = 258;
  constexpr std::uint32_t end_of_block = 256;
  Bits bits;
  bits.number(1, 1);  // the last block
  bits.number(1, 2);  // with the known code
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t run = 0;
    while (i > 0 && run < longest && i + run < bytes.size() && bytes[i + run] == bytes[i - 1]) ++run;
    if (run >= shortest) {
      put_repeat(bits, static_cast<std::uint32_t>(run));
      i += run;
    } else {
      put_symbol(bits, static_cast<unsigned char>(bytes[i++]));
    }
  }
  put_symbol(bits, end_of_block);
  return bits.finish();
}

Bytes zlib(const Bytes& bytes) { return Bytes("\x78\x01", 2) + deflate(bytes) + big_endian(adler32(bytes)); }

Bytes chunk(const Bytes& kind, const Bytes& content) {
  return big_endian(static_cast<std::uint32_t>(content.size())) + kind + content + big_endian(crc32(kind + content));
}

// Each row as its difference from the row above it.
Bytes filtered(std::span<const std::uint8_t> pixels, std::size_t row_bytes) {
  constexpr char up = 2;
  Bytes rows;
  rows.reserve(pixels.size() + pixels.size() / row_bytes);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (i % row_bytes == 0) rows += up;
    const unsigned above = i < row_bytes ? 0 : pixels[i - row_bytes];
    rows += static_cast<char>((pixels[i] - above) & 255);
  }
  return rows;
}

}  // namespace

Bytes encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels) {
  const bool is_known = channels == 1 || channels == 3;
  if (!is_known || width == 0 || height == 0 || pixels.size() != width * height * static_cast<std::size_t>(channels)) {
    throw UsageError(
        {.what = text::concat(text::count(static_cast<long long>(pixels.size()), "byte"), " are no image of ", width,
                              " x ", height, " pixels with ", channels, " channels"),
         .hint = "give 1 or 3 bytes a pixel"});
  }
  constexpr char grey = 0;
  constexpr char colour = 2;
  Bytes head = big_endian(static_cast<std::uint32_t>(width)) + big_endian(static_cast<std::uint32_t>(height));
  head += Bytes{8, channels == 1 ? grey : colour, 0, 0, 0};
  return Bytes("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", head) +
         chunk("IDAT", zlib(filtered(pixels, width * static_cast<std::size_t>(channels)))) + chunk("IEND", "");
}

}  // namespace hortator::formats
