#include "formats/file/utf8.hpp"

#include <array>
#include <cstddef>

namespace hortator::formats {
namespace {

/// First bytes of a character: how many bytes follow, and the bounds of the second one, which exclude overlong forms,
/// surrogates, and characters above U+10FFFF.
struct Utf8Lead {
  unsigned char from, to;
  std::size_t following;
  unsigned char min_second, max_second;
};

constexpr std::array leads = {
    Utf8Lead{0x00, 0x7f, 0, 0, 0},       Utf8Lead{0xc2, 0xdf, 1, 0x80, 0xbf}, Utf8Lead{0xe0, 0xe0, 2, 0xa0, 0xbf},
    Utf8Lead{0xe1, 0xec, 2, 0x80, 0xbf}, Utf8Lead{0xed, 0xed, 2, 0x80, 0x9f}, Utf8Lead{0xee, 0xef, 2, 0x80, 0xbf},
    Utf8Lead{0xf0, 0xf0, 3, 0x90, 0xbf}, Utf8Lead{0xf1, 0xf3, 3, 0x80, 0xbf}, Utf8Lead{0xf4, 0xf4, 3, 0x80, 0x8f},
};

const Utf8Lead* find_lead(unsigned char byte) {
  for (const auto& lead : leads) {
    if (byte >= lead.from && byte <= lead.to) return &lead;
  }
  return nullptr;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t at = 0; at < text.size();) {
    const auto* lead = find_lead(byte(at));
    if (lead == nullptr || lead->following >= text.size() - at) return false;
    for (std::size_t i = 1; i <= lead->following; ++i) {
      const auto min = i == 1 ? lead->min_second : 0x80;
      const auto max = i == 1 ? lead->max_second : 0xbf;
      if (byte(at + i) < min || byte(at + i) > max) return false;
    }
    at += lead->following + 1;
  }
  return true;
}

}  // namespace hortator::formats
