// Fuzzes tokenizers in GGUF files: any file is refused, or has a tokenizer that encodes and decodes.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/tokenizer.hpp>

#include "target.hpp"

using namespace hortator;

namespace {

void encode_and_decode(const models::Tokenizer& tokenizer) {
  const auto encoding = tokenizer.encode("Hello 12  w\u00f6rld <s>\U0001F600");
  if (encoding.ids.size() != encoding.offsets.size()) __builtin_trap();
  auto ids = encoding.ids;
  for (std::int64_t id = 0; id < 12; ++id) ids.push_back(id);
  tokenizer.decode(ids);
}

}  // namespace

FUZZ_TARGET(gguf_tokenizer) {
  static const std::filesystem::path file = std::filesystem::current_path() / "fuzzed.gguf";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    encode_and_decode(models::Tokenizer(file));
  } catch (const Error&) {
  }
  try {
    models::ChatTemplate(file).render({{"user", "x"}});
  } catch (const Error&) {
  }
  return 0;
}
