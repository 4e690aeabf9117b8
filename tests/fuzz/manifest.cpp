// Fuzzes the reader of a checkpoint's manifest: any bytes are refused, or describe a checkpoint that is written as it
// was read. Most inputs would fail at the checksum, so each is also read with a right one.
#include "checkpoint/manifest.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "core/checksum/crc.hpp"
#include "formats/file/file_error.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

constexpr std::string_view checksum_key = ",\n\"crc32c\": ";

void read(const std::string& text) {
  try {
    const auto json = checkpoint::to_json(checkpoint::parse_manifest(text));
    if (checkpoint::to_json(checkpoint::parse_manifest(json)) != json) __builtin_trap();
  } catch (const FileError&) {
  }
}

}  // namespace

FUZZ_TARGET(manifest) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  const auto body = text.substr(0, text.rfind(checksum_key));
  read(body + std::string(checksum_key) + std::to_string(core::crc32c(body.data(), body.size())) + "}\n");
  return 0;
}
