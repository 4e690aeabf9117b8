#include "formats/file/utf8.hpp"

#include <array>

namespace hortator::formats {
namespace {

/// What a first byte promises: how many bytes follow, and between which bounds the next one lies. Those bounds leave
/// out overlong forms, surrogates, and what is above U+10FFFF.
struct Lead {
  unsigned char from, to;
  std::size_t following;
  unsigned char least, most;
};

constexpr std::array leads = {
    Lead{0x00, 0x7f, 0, 0, 0},       Lead{0xc2, 0xdf, 1, 0x80, 0xbf}, Lead{0xe0, 0xe0, 2, 0xa0, 0xbf},
    Lead{0xe1, 0xec, 2, 0x80, 0xbf}, Lead{0xed, 0xed, 2, 0x80, 0x9f}, Lead{0xee, 0xef, 2, 0x80, 0xbf},
    Lead{0xf0, 0xf0, 3, 0x90, 0xbf}, Lead{0xf1, 0xf3, 3, 0x80, 0xbf}, Lead{0xf4, 0xf4, 3, 0x80, 0x8f},
};

const Lead* find(unsigned char byte) {
  for (const auto& lead : leads) {
    if (byte >= lead.from && byte <= lead.to) return &lead;
  }
  return nullptr;
}

}  // namespace

std::optional<Utf8Fault> find_utf8_fault(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t at = 0; at < text.size();) {
    const auto* lead = find(byte(at));
    if (lead == nullptr) return Utf8Fault{.at = at, .bytes = 1};
    for (std::size_t i = 1; i <= lead->following; ++i) {
      if (at + i == text.size()) return Utf8Fault{.at = at, .bytes = 0};
      const auto least = i == 1 ? lead->least : 0x80;
      const auto most = i == 1 ? lead->most : 0xbf;
      if (byte(at + i) < least || byte(at + i) > most) return Utf8Fault{.at = at, .bytes = i};
    }
    at += lead->following + 1;
  }
  return std::nullopt;
}

}  // namespace hortator::formats
