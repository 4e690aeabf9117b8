// Tokenizers and chat templates in GGUF files: the tokenizers of the stored cases, written as llama.cpp's converter
// does, give the same tokens and texts.
#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/tokenizer.hpp>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/gguf_file.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

std::string joined(const json& merge) {
  if (merge.is_string()) return merge.get<std::string>();
  return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
}

/// The tokens of a tokenizer.json by their numbers, and the types that llama.cpp gives them.
struct Listed {
  std::vector<std::string> tokens = {};
  std::vector<std::int32_t> types = {};

  void set(std::size_t id, const std::string& token, std::int32_t type) {
    if (tokens.size() <= id) tokens.resize(id + 1), types.resize(id + 1, 5);
    tokens[id] = token;
    types[id] = type;
  }
};

Listed listed(const json& file) {
  Listed all;
  for (const auto& [token, id] : file["model"]["vocab"].items()) all.set(id.get<std::size_t>(), token, 1);
  for (const auto& one : file["added_tokens"]) {
    const bool is_special = one["special"].get<bool>();
    all.set(one["id"].get<std::size_t>(), one["content"].get<std::string>(), is_special ? 3 : 4);
  }
  return all;
}

test::GgufFile gguf_of(const json& file, const std::string& splitter) {
  const auto all = listed(file);
  test::GgufFile gguf;
  gguf.set("general.architecture", "llama");
  gguf.set("tokenizer.ggml.tokens", all.tokens);
  gguf.set("tokenizer.ggml.token_type", all.types);
  gguf.set("tokenizer.ggml.model", "gpt2");
  std::vector<std::string> merges;
  for (const auto& merge : file["model"]["merges"]) merges.push_back(joined(merge));
  gguf.set("tokenizer.ggml.pre", splitter);
  gguf.set("tokenizer.ggml.merges", merges);
  gguf.set("tokenizer.ggml.bos_token_id", 0);
  return gguf;
}

std::string error_of(const test::GgufFile& gguf) {
  const test::OwnFolder folder("gguf_tokenizer");
  std::filesystem::create_directories(folder.path);
  gguf.write(folder.path / "model.gguf");
  try {
    models::Tokenizer tokenizer(folder.path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the tokenizer of a GGUF file is that of tokenizer.json") {
  const auto [name, splitter] =
      GENERATE(table<std::string, std::string>({{"gpt2", "gpt-2"}, {"llama3", "llama-bpe"}, {"qwen2", "qwen2"}}));
  INFO(name);
  const auto stored = std::filesystem::path(TOKENIZER_CASES) / name;
  const test::OwnFolder folder("gguf_tokenizer");
  std::filesystem::create_directories(folder.path);
  gguf_of(json::parse(test::content_of(stored / "tokenizer.json")), splitter).write(folder.path / "model.gguf");
  const models::Tokenizer tokenizer(folder.path), same(folder.path / "model.gguf");
  std::size_t compared = 0;
  for (const auto& one : json::parse(test::content_of(stored / "texts.json"))) {
    if (one.contains("error") || one.contains("pair")) continue;
    INFO(one.dump(-1, ' ', true));
    const auto text = one.at("text").get<std::string>();
    CHECK(json(tokenizer.encode(text, one.at("special").get<bool>()).ids) == one.at("ids"));
    CHECK(same.encode(text).ids == tokenizer.encode(text).ids);
    const auto ids = one.at("decode").get<std::vector<std::int64_t>>();
    CHECK(tokenizer.decode(ids) == one.at("decoded").get<std::string>());
    CHECK(tokenizer.decode(ids, false) == one.at("decoded_all").get<std::string>());
    ++compared;
  }
  CHECK(compared > 20);
}

TEST_CASE("SmolLM's splitter takes digits apart, and tokens are added where the metadata ask for it") {
  test::GgufFile gguf;
  gguf.set("tokenizer.ggml.model", "gpt2");
  gguf.set("tokenizer.ggml.pre", "smollm");
  gguf.set("tokenizer.ggml.tokens",
           std::vector<std::string>{"<b>", "<e>", "a", "1", "2", "12", "\u0120", "\u0120\u0120"});
  gguf.set("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 3, 1, 1, 1, 1, 1, 1});
  gguf.set("tokenizer.ggml.merges", std::vector<std::string>{"1 2", "\u0120 \u0120"});
  gguf.set("tokenizer.ggml.add_bos_token", true);
  gguf.set("tokenizer.ggml.add_eos_token", true);
  gguf.set("tokenizer.ggml.bos_token_id", 0);
  gguf.set("tokenizer.ggml.eos_token_id", 1);
  gguf.set("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  const test::OwnFolder folder("gguf_tokenizer");
  std::filesystem::create_directories(folder.path);
  gguf.write(folder.path / "model.gguf");
  const models::Tokenizer tokenizer(folder.path);
  CHECK(tokenizer.encode("a  12").ids == std::vector<std::int64_t>{0, 2, 7, 3, 4, 1});
  CHECK(tokenizer.encode("<e>", false).ids == std::vector<std::int64_t>{1});
  CHECK(models::ChatTemplate(folder.path).render({{"user", "x"}}) == "<b>x<e>");
  CHECK(models::ChatTemplate(folder.path / "model.gguf").render({{"user", "x"}}) == "<b>x<e>");
}

TEST_CASE("SentencePiece's tokens are joined in the order of their scores") {
  test::GgufFile gguf;
  gguf.set("tokenizer.ggml.model", "llama");
  gguf.set("tokenizer.ggml.tokens",
           std::vector<std::string>{"<unk>", "<s>", "\u2581", "a", "b", "c", "bc", "ab", "abc", "<0x64>", "\u00e9"});
  gguf.set("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 1, 1, 1, 1, 1, 1, 1, 6, 1});
  gguf.set("tokenizer.ggml.scores", std::vector<float>{0, 0, -9, -9, -9, -9, -1, -2, -3, 0, -9});
  gguf.set("tokenizer.ggml.bos_token_id", 1);
  const test::OwnFolder folder("gguf_tokenizer");
  std::filesystem::create_directories(folder.path);
  gguf.write(folder.path / "model.gguf");
  const models::Tokenizer tokenizer(folder.path);
  using Ids = std::vector<std::int64_t>;
  CHECK(tokenizer.encode("abc").ids == Ids{1, 2, 8});  // bc first, then a and bc
  CHECK(tokenizer.encode("ab c").ids == Ids{1, 2, 7, 2, 5});
  CHECK(tokenizer.encode("abd\u00e9", false).ids == Ids{2, 7, 9, 10});  // a byte, where there is no token
  CHECK(tokenizer.encode("xx", false).ids == Ids{2, 0});
  CHECK(tokenizer.decode({1, 2, 8, 2, 5}) == "abc c");
}

TEST_CASE("a GGUF file with another tokenizer is refused by name") {
  test::GgufFile none;
  CHECK_THAT(error_of(none), ContainsSubstring("has no tokenizer"));
  const auto with = [](const char* model, const char* splitter) {
    test::GgufFile gguf;
    gguf.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
    gguf.set("tokenizer.ggml.model", model);
    gguf.set("tokenizer.ggml.pre", splitter);
    return gguf;
  };
  CHECK_THAT(error_of(with("bert", "")), ContainsSubstring("of the kind 'bert', expected gpt2 or llama"));
  CHECK_THAT(error_of(with("gpt2", "gpt-2")), ContainsSubstring("tokenizer.ggml.merges"));
  CHECK_THAT(error_of(with("llama", "")), ContainsSubstring("tokenizer.ggml.scores"));
  auto other = with("gpt2", "tekken");
  other.set("tokenizer.ggml.merges", std::vector<std::string>{});
  CHECK_THAT(error_of(other), ContainsSubstring("'tekken'; known are gpt-2"));
  test::GgufFile twice;
  twice.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "a"});
  twice.set("tokenizer.ggml.model", "gpt2");
  twice.set("tokenizer.ggml.pre", "gpt-2");
  twice.set("tokenizer.ggml.merges", std::vector<std::string>{});
  CHECK_THAT(error_of(twice), ContainsSubstring("has the token 1 twice"));
}
