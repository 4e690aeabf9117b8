// Fuzzes the reader of tar archives: any bytes are accepted or rejected, and members lie within the archive.
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/tar/members.hpp"
#include "target.hpp"

using namespace hortator::formats;

namespace {

/// Gives each header the checksum of its bytes, so that mutations get past it.
std::vector<char> with_sums(const std::uint8_t* data, std::size_t size) {
  std::vector<char> bytes(data, data + size);
  for (std::size_t at = 0; at + 512 <= size; at += 512) {
    auto* block = bytes.data() + at;
    if (block[0] == 0) continue;
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; ++i) sum += static_cast<unsigned char>(block[i]);
    for (int digit = 5; digit >= 0; --digit, sum /= 8) block[148 + digit] = static_cast<char>('0' + sum % 8);
    block[154] = 0;
  }
  return bytes;
}

}  // namespace

FUZZ_TARGET(tar_members) {
  const auto bytes = with_sums(data, size);
  const auto read = [&](std::uint64_t offset, void* to, std::size_t count) {
    if (offset > bytes.size() || count > bytes.size() - offset) __builtin_trap();
    std::memcpy(to, bytes.data() + offset, count);
  };
  try {
    TarMembers members(read, bytes.size());
    for (auto position = members.position(); const auto member = members.next(); position = members.position()) {
      if (member->offset > bytes.size() || member->bytes > bytes.size() - member->offset) __builtin_trap();
      if (members.position() <= position) __builtin_trap();
    }
  } catch (const TarFault&) {
  }
  return 0;
}
