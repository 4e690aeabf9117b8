#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "models/tokenizer/parts.hpp"
#include "models/tokenizer/piece_cache.hpp"

namespace hortator::models {

void require_list(bool holds, const ConfigFields& fields, const std::string& name, const std::string& expected) {
  if (holds) return;
  throw UsageError(
      {.what = text::concat(fields.file(), ": ", text::quote("model." + name), " is not valid"), .hint = expected});
}

Vocabulary vocabulary_of(const ConfigFields& fields, const nlohmann::json& stored) {
  const auto found = stored.find("vocab");
  require_list(found != stored.end() && found->is_object(), fields, "vocab",
               "expected an object of tokens and their numbers");
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  Vocabulary vocabulary;
  vocabulary.reserve(found->size());
  for (const auto& [token, id] : found->items()) {
    require_list(id.is_number_unsigned() && id.get<std::uint64_t>() < most, fields, "vocab",
                 "expected numbers from 0 to 2147483647");
    vocabulary.emplace(token, id.get<std::int64_t>());
  }
  return vocabulary;
}

std::vector<std::int64_t> byte_tokens(const Vocabulary& vocabulary, std::string_view bytes) {
  std::vector<std::int64_t> ids;
  for (const auto byte : bytes) {
    const auto value = static_cast<unsigned>(static_cast<unsigned char>(byte));
    const auto found = vocabulary.find(text::print("<0x%02X>", value));
    if (found == vocabulary.end()) return {};
    ids.push_back(found->second);
  }
  return ids;
}

std::unique_ptr<TokenModel> make_token_model(const ConfigFields& fields, const nlohmann::json& stored) {
  // older files leave the type out
  const auto* absent = fields.has("max_input_chars_per_word") ? "WordPiece" : fields.has("unk_id") ? "Unigram" : "BPE";
  const auto type = fields.text("type", absent);
  fields.require_one_of("type", type, {"BPE", "WordPiece", "Unigram"});
  auto model = type == "BPE"         ? make_byte_pairs(fields, stored)
               : type == "WordPiece" ? make_word_pieces(fields, stored)
                                     : make_unigram(fields, stored);
  fields.require_all_used();
  return std::make_unique<PieceCache>(std::move(model));
}

}  // namespace hortator::models
