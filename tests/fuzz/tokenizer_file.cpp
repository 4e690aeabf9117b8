// Fuzzes the reader of tokenizer.json: any file is refused, or makes a tokenizer that encodes and decodes texts or
// refuses them.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>

#include "target.hpp"

using namespace hortator;

namespace {

const std::string text = "Hello w\u00f6rld's 1234  \n<s>[MASK] \u6771\u4eac e\u0301\u0323 \U0001F600\u200D\t\u00b2x";

void use(const models::Tokenizer& tokenizer) {
  const auto encoding = tokenizer.encode({.text = text, .pair = "a second"});
  if (encoding.ids.size() != encoding.offsets.size() || encoding.ids.size() != encoding.tokens.size()) __builtin_trap();
  for (const auto& [begin, end] : tokenizer.encode(text, false).offsets)
    if (begin > end || end > text.size()) __builtin_trap();
  std::vector<std::int64_t> ids(encoding.ids.begin(),
                                encoding.ids.begin() + std::min<std::ptrdiff_t>(50, std::ssize(encoding.ids)));
  for (std::int64_t id = 0; id < 12; ++id) ids.push_back(id);
  tokenizer.decode(ids);
  tokenizer.decode(ids, false);
}

}  // namespace

FUZZ_TARGET(tokenizer_file) {
  static const std::filesystem::path file = std::filesystem::current_path() / "tokenizer.fuzzed.json";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    use(models::Tokenizer(file));
  } catch (const Error&) {
  }
  return 0;
}
