#pragma once

#include <cstdint>
#include <functional>
#include <hortator/models/tokenizer.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/config/config_fields.hpp"
#include "models/tokenizer/characters/aligned_text.hpp"

/// The parts of a tokenizer, each made from its object in tokenizer.json.
namespace hortator::models {

using Vocabulary = std::unordered_map<std::string, std::int64_t>;

/// Changes a text before anything else.
using Normalizer = std::function<void(AlignedText&)>;
/// Splits each piece of a text further.
using PreTokenizer = std::function<std::vector<AlignedText>(std::vector<AlignedText>)>;
/// Makes text of tokens again, step by step.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// Part of a piece. It is shown as the token of its id, or as the text that is there.
struct PieceToken {
  std::int64_t id = 0;
  TextRange range = {};
  bool is_shown_as_text = false;
};

/// Finds the tokens of a piece.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual std::vector<PieceToken> tokenize(const std::u32string& piece) const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

/// Adds special tokens to a text, or to a pair.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual std::size_t added(bool is_pair) const = 0;
  virtual Encoding process(Encoding first, std::optional<Encoding> second, bool add_special_tokens) const = 0;
};

// All throw UsageError, with the name of the part, for what is not supported. Empty fields make an empty function or
// null.
Normalizer make_normalizer(const ConfigFields& fields);
Normalizer make_precompiled(const ConfigFields& fields);
PreTokenizer make_pre_tokenizer(const ConfigFields& fields);
Decoder make_decoder(const ConfigFields& fields);
std::unique_ptr<PostProcessor> make_post_processor(const ConfigFields& fields);
/// `stored` has the large lists of the model: vocab and merges.
std::unique_ptr<TokenModel> make_token_model(const ConfigFields& fields, const nlohmann::json& stored);
std::unique_ptr<TokenModel> make_byte_pairs(const ConfigFields& fields, const nlohmann::json& stored);
std::unique_ptr<TokenModel> make_word_pieces(const ConfigFields& fields, const nlohmann::json& stored);
std::unique_ptr<TokenModel> make_unigram(const ConfigFields& fields, const nlohmann::json& stored);
/// The ids of the tokens <0x00> to <0xFF> of a text's bytes; empty if the vocabulary does not have all of them.
std::vector<std::int64_t> byte_tokens(const Vocabulary& vocabulary, std::string_view bytes);
/// Throws UsageError about one of these lists.
void require_list(bool holds, const ConfigFields& fields, const std::string& name, const std::string& expected);
Vocabulary vocabulary_of(const ConfigFields& fields, const nlohmann::json& stored);

/// A pattern that matches a string, or a regular expression.
std::function<std::vector<TextRange>(const std::u32string&)> make_pattern(const ConfigFields& fields);
std::string text_field(const ConfigFields& fields, const std::string& name);

// Bytes as printable characters, as byte-level BPE has them.
char32_t character_of_byte(unsigned char byte);
std::optional<unsigned char> byte_of_character(char32_t character);

/// Moves the offsets of tokens off the spaces that they begin or end with.
void trim_offsets(Encoding& encoding, bool has_prefix_space);
void append(Encoding& to, Encoding more);

}  // namespace hortator::models
