#include "models/tokenizer/gguf/gguf_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/error.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "models/tokenizer/characters/splitters.hpp"
#include "models/tokenizer/gguf/gguf_merges.hpp"

namespace hortator::models {
namespace {

using formats::GgufHeader;
using formats::GgufList;
using nlohmann::json;

constexpr const char* tokens_name = "tokenizer.ggml.tokens";
constexpr const char* types_name = "tokenizer.ggml.token_type";
constexpr const char* merges_name = "tokenizer.ggml.merges";
constexpr const char* scores_name = "tokenizer.ggml.scores";

/// How byte-level BPE splits a text, by the names that llama.cpp gives to pre-tokenizers.
enum class Splitter { gpt2, digits, llama3, qwen2 };
constexpr std::array<std::pair<std::string_view, Splitter>, 14> splitters = {{{"gpt-2", Splitter::gpt2},
                                                                              {"gpt2", Splitter::gpt2},
                                                                              {"olmo", Splitter::gpt2},
                                                                              {"smollm", Splitter::digits},
                                                                              {"starcoder", Splitter::digits},
                                                                              {"refact", Splitter::digits},
                                                                              {"command-r", Splitter::digits},
                                                                              {"llama-bpe", Splitter::llama3},
                                                                              {"llama3", Splitter::llama3},
                                                                              {"llama-v3", Splitter::llama3},
                                                                              {"falcon3", Splitter::llama3},
                                                                              {"qwen2", Splitter::qwen2},
                                                                              {"deepseek-r1-qwen", Splitter::qwen2},
                                                                              {"megrez", Splitter::qwen2}}};

class GgufTokenizer {
 public:
  GgufTokenizer(const GgufHeader& header, const std::filesystem::path& file) : header_(header), file_(file) {
    const auto* tokens = header_.find<GgufList>(tokens_name);
    if (tokens == nullptr || tokens->texts.empty()) refuse("has no tokenizer");
    tokens_ = &tokens->texts;
    const auto* types = header_.find<GgufList>(types_name);
    if (types != nullptr) types_ = types->numbers;
    if (!types_.empty() && types_.size() != tokens_->size())
      refuse("does not have a type for each token: tokenizer.ggml.token_type");
    types_.resize(tokens_->size(), static_cast<double>(TokenType::normal));
  }

  json made() const {
    const auto* model = header_.find<std::string>("tokenizer.ggml.model");
    const auto name = model == nullptr ? std::string() : *model;
    if (name == "gpt2") return byte_level();
    if (name == "llama") return sentence_piece();
    refuse(text::concat("has a tokenizer of the kind ", text::quote(name), ", expected gpt2 or llama"));
  }

 private:
  enum class TokenType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  bool is(std::size_t id, TokenType type) const { return types_[id] == static_cast<double>(type); }

  [[noreturn]] void refuse(const std::string& fault) const {
    throw UsageError({.what = text::concat("The GGUF file ", file_, " ", fault),
                      .why = "there is no tokenizer.json, so its metadata describe the tokenizer",
                      .hint = "put the tokenizer.json of the original model into the model's folder"});
  }

  json byte_level() const {
    const auto* merges = header_.find<GgufList>(merges_name);
    if (merges == nullptr || !merges->numbers.empty()) refuse("has no list of texts tokenizer.ggml.merges");
    const auto way = splitter();
    json file = {{"model",
                  {{"type", "BPE"},
                   {"ignore_merges", way == Splitter::llama3},
                   {"vocab", vocabulary()},
                   {"merges", merges->texts}}},
                 {"added_tokens", added_tokens()},
                 {"pre_tokenizer", pre_tokenizer(way)},
                 {"post_processor", ends(/*begins=*/way == Splitter::llama3)},
                 {"decoder", {{"type", "ByteLevel"}}}};
    if (way == Splitter::qwen2) file["normalizer"] = {{"type", "NFC"}};
    return file;
  }

  Splitter splitter() const {
    const auto* name = header_.find<std::string>("tokenizer.ggml.pre");
    const auto* const known = name == nullptr
                                  ? splitters.end()
                                  : std::ranges::find(splitters, *name, &std::pair<std::string_view, Splitter>::first);
    if (known != splitters.end()) return known->second;
    std::vector<std::string> names;
    for (const auto& [one, way] : splitters) names.emplace_back(one);
    refuse(text::concat("splits texts in the way of ", name == nullptr ? "'default'" : text::quote(*name),
                        "; known are ", text::join(names)));
  }

  static json pre_tokenizer(Splitter way) {
    const bool is_gpt2s = way == Splitter::gpt2 || way == Splitter::digits;
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", is_gpt2s}};
    if (way == Splitter::gpt2) return bytes;
    json first = {{"type", "Digits"}, {"individual_digits", true}};
    if (!is_gpt2s) {
      const auto expression = way == Splitter::llama3 ? llama3_expression : qwen2_expression;
      first = {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
    }
    return {{"type", "Sequence"}, {"pretokenizers", json::array({first, bytes})}};
  }

  json sentence_piece() const {
    const auto* scores = header_.find<GgufList>(scores_name);
    if (scores == nullptr || scores->numbers.size() != tokens_->size())
      refuse("does not have a score for each token: tokenizer.ggml.scores");
    if (std::ranges::any_of(scores->numbers, [](double score) { return std::isnan(score); }))
      refuse("has a score that is not a number in tokenizer.ggml.scores");
    const bool has_space = flag("add_space_prefix", true);
    json model = {{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true}, {"vocab", vocabulary()}};
    model["merges"] = gguf_merges(*tokens_, scores->numbers, [&](std::size_t id) { return is(id, TokenType::normal); });
    for (std::size_t id = 0; id < tokens_->size() && !model.contains("unk_token"); ++id)
      if (is(id, TokenType::unknown)) model["unk_token"] = (*tokens_)[id];
    auto normalizers = json::array({{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}});
    auto decoders = json::array({{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                                 {{"type", "ByteFallback"}},
                                 {{"type", "Fuse"}}});
    if (has_space) {
      normalizers.insert(normalizers.begin(), json{{"type", "Prepend"}, {"prepend", "\u2581"}});
      decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return {{"model", std::move(model)},
            {"added_tokens", added_tokens()},
            {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
            {"post_processor", ends(/*begins=*/true)},
            {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}}};
  }

  json vocabulary() const {
    auto vocabulary = json::object();
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      if (!vocabulary.emplace((*tokens_)[id], id).second)
        refuse(text::concat("has the token ", id, " twice in tokenizer.ggml.tokens"));
    }
    return vocabulary;
  }

  json added_tokens() const {
    auto added = json::array();
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      const bool is_special = is(id, TokenType::control) || is(id, TokenType::unknown);
      if (!is_special && !is(id, TokenType::user_defined)) continue;
      added.push_back({{"id", id}, {"content", (*tokens_)[id]}, {"special", is_special}, {"normalized", false}});
    }
    return added;
  }

  bool flag(const std::string& name, bool absent) const {
    const auto* value = header_.find<bool>("tokenizer.ggml." + name);
    return value == nullptr ? absent : *value;
  }

  /// The token of an entry such as "bos_token_id".
  std::string token(const std::string& name) const {
    const auto* id = header_.find<std::uint64_t>("tokenizer.ggml." + name);
    if (id != nullptr && *id < tokens_->size()) return (*tokens_)[*id];
    refuse(text::concat("adds a token that its metadata do not name: tokenizer.ggml.", name));
  }

  /// The post-processor that adds the tokens of the beginning and of the end; null if there are none.
  json ends(bool begins) const {
    auto single = json::array(), pair = json::array();
    auto special = json::object();
    const auto add = [&](const char* name) {
      const auto content = token(name);
      const auto id = *header_.find<std::uint64_t>(std::string("tokenizer.ggml.") + name);
      special[content] = {{"id", content}, {"ids", json::array({id})}, {"tokens", json::array({content})}};
      single.push_back({{"SpecialToken", {{"id", content}, {"type_id", 0}}}});
      pair.push_back(single.back());
    };
    const auto sequence = [](const char* id, int type) { return json{{"Sequence", {{"id", id}, {"type_id", type}}}}; };
    if (flag("add_bos_token", begins)) add("bos_token_id");
    single.push_back(sequence("A", 0));
    pair.push_back(sequence("A", 0));
    pair.push_back(sequence("B", 1));
    if (flag("add_eos_token", false)) add("eos_token_id");
    if (special.empty()) return nullptr;
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }

  const GgufHeader& header_;
  const std::filesystem::path& file_;
  const std::vector<std::string>* tokens_ = nullptr;
  std::vector<double> types_ = {};
};

}  // namespace

formats::GgufLists gguf_tokenizer_lists() { return {tokens_name, types_name, merges_name, scores_name}; }

nlohmann::json gguf_tokenizer(const GgufHeader& header, const std::filesystem::path& file) {
  return GgufTokenizer(header, file).made();
}

}  // namespace hortator::models
