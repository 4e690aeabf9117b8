// Text that comes token by token.
#include <filesystem>
#include <hortator/models/tokenizer.hpp>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

std::filesystem::path folder_of(const char* tokenizer) { return std::filesystem::path(TOKENIZER_CASES) / tokenizer; }

/// The pieces in which the text of the tokens comes.
std::vector<std::string> streamed(const models::Tokenizer& tokenizer, const std::vector<std::int64_t>& ids) {
  models::TextStream stream(tokenizer);
  std::vector<std::string> pieces;
  for (const auto id : ids) pieces.push_back(stream.push(id));
  pieces.push_back(stream.finish());
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const auto& piece : pieces) all += piece;
  return all;
}

}  // namespace

TEST_CASE("the pieces of a stream are the decoded text, each in whole characters") {
  std::size_t compared = 0;
  for (const auto* name : {"gpt2", "roberta", "llama3", "qwen2", "bert", "bert_cased", "llama2", "metaspace", "unigram",
                           "unigram_bytes", "albert"}) {
    const models::Tokenizer tokenizer(folder_of(name));
    const auto texts = json::parse(test::content_of(folder_of(name) / "texts.json"));
    for (const auto& one : texts) {
      if (!one.contains("ids")) continue;
      INFO(name << " " << one.dump(-1, ' ', true));
      const auto pieces = streamed(tokenizer, one.at("ids"));
      CHECK(joined(pieces) == tokenizer.decode(one.at("ids")));
      for (const auto& piece : pieces) CHECK(core::is_utf8(piece));
      ++compared;
    }
  }
  CHECK(compared > 300);
}

TEST_CASE("a character comes out once its last byte has come") {
  const models::Tokenizer tokenizer(folder_of("gpt2"));
  const auto ids = tokenizer.encode("\U0001F600!").ids;
  REQUIRE(ids.size() == 5);  // the tokenizer has no token for the character
  CHECK(streamed(tokenizer, ids) == std::vector<std::string>{"", "", "", "\U0001F600", "!", ""});
  const std::vector<std::int64_t> half(ids.begin(), ids.begin() + 2);
  CHECK(streamed(tokenizer, half).back() == "\uFFFD");
}

TEST_CASE("a stream can be used again after its end") {
  const models::Tokenizer tokenizer(folder_of("llama2"));
  models::TextStream stream(tokenizer);
  for (int i = 0; i < 2; ++i) {
    std::string text;
    for (const auto id : tokenizer.encode("two words").ids) text += stream.push(id);
    CHECK(text + stream.finish() == "two words");
  }
}
