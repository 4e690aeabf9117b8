#include <algorithm>
#include <atomic>
#include <exception>
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>
#include <set>
#include <thread>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "formats/file/file_error.hpp"
#include "formats/gguf/file.hpp"
#include "models/tokenizer/added_tokens.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/gguf/gguf_tokenizer.hpp"
#include "models/tokenizer/limits.hpp"
#include "models/tokenizer/parts.hpp"
#include "models/tokenizer/token_table.hpp"

namespace hortator::models {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 28;

nlohmann::json read_tokenizer(const std::filesystem::path& path) {
  const auto content = core::read_at_most(path, max_file_bytes);
  if (!content) {
    throw formats::FileError({.what = text::concat("Cannot read the tokenizer ", path),
                              .hint = "name a tokenizer.json, or the folder of a checkpoint that has one"});
  }
  auto root = core::is_shallow(*content) ? nlohmann::json::parse(*content, nullptr, false) : nlohmann::json();
  if (!root.is_object())
    throw formats::FileError({.what = text::concat(path, " is not a valid JSON object, so it is not a tokenizer")});
  return root;
}

nlohmann::json tokenizer_in_gguf(const std::filesystem::path& file) {
  return gguf_tokenizer(formats::read_gguf_header(formats::FixedFile(file), gguf_tokenizer_lists()), file);
}

/// Moves the large lists out of the model's object.
nlohmann::json take_lists(nlohmann::json& root) {
  auto lists = nlohmann::json::object();
  const auto model = root.find("model");
  if (model == root.end() || !model->is_object()) return lists;
  for (const auto* name : {"vocab", "merges"}) {
    const auto found = model->find(name);
    if (found == model->end()) continue;
    lists[name] = std::move(*found);
    model->erase(found);
  }
  return lists;
}

std::vector<AddedToken> those(const std::vector<AddedToken>& tokens, bool is_normalized) {
  std::vector<AddedToken> some;
  std::ranges::copy_if(tokens, std::back_inserter(some),
                       [&](const auto& one) { return one.normalized == is_normalized; });
  return some;
}

}  // namespace

struct Tokenizer::Parts {
  Parts(const ConfigFields& fields, const nlohmann::json& lists)
      : normalizer(make_normalizer(fields.object("normalizer"))),
        pre_tokenizer(make_pre_tokenizer(fields.object("pre_tokenizer"))),
        model(make_token_model(fields.object("model"), lists)),
        post_processor(make_post_processor(fields.object("post_processor"))),
        decoder(make_decoder(fields.object("decoder"))),
        truncation(make_truncation(fields.object("truncation"))),
        padding(make_padding(fields.object("padding"))),
        added(added_tokens(fields)),
        as_written(those(added, false), [](AlignedText&) {}),
        as_normalized(those(added, true), normalizer),
        tokens(model->vocabulary().size() + added.size()) {
    fields.skip("version");
    fields.require_all_used();
    for (const auto& [token, id] : model->vocabulary()) tokens.set(id, token);
    for (const auto& one : added) {
      if (const auto* in_vocabulary = tokens.find(one.id)) vocabulary_texts.emplace(one.id, *in_vocabulary);
      tokens.set(one.id, one.normalized ? normalized_content(one) : one.content);
      added_ids.insert_or_assign(one.content, one.id);
      if (one.special) special.insert(one.id);
    }
  }

  std::string normalized_content(const AddedToken& token) const {
    AlignedText content(code_points(token.content));
    normalizer(content);
    return to_utf8(content.text());
  }

  Encoding encode_text(std::string_view utf8, std::int64_t type_id) const {
    Encoding encoding;
    const AlignedText whole(code_points(utf8));
    for (const auto& part : as_written.split(whole.text())) {
      auto text = whole.slice(part.range);
      if (part.id) {
        add_whole(encoding, *part.id, text, type_id);
        continue;
      }
      normalizer(text);
      for (const auto& inner : as_normalized.split(text.text())) {
        auto piece = text.slice(inner.range);
        if (inner.id) {
          add_whole(encoding, *inner.id, piece, type_id);
        } else {
          add_pieces(encoding, std::move(piece), type_id);
        }
      }
    }
    return encoding;
  }

  struct EncodeOptions {
    bool adds_special_tokens = true, has_limits = true;
  };
  Encoding encode(std::string_view utf8, const std::optional<std::string>& pair, const EncodeOptions& options) const {
    auto first = encode_text(utf8, 0);
    std::optional<Encoding> second;
    if (pair) second = encode_text(*pair, 1);
    const auto count = options.adds_special_tokens ? post_processor->added(pair.has_value()) : 0;
    if (truncation && options.has_limits) truncate(*truncation, count, first, second);
    return post_processor->process(std::move(first), std::move(second), options.adds_special_tokens);
  }

  void add_pieces(Encoding& encoding, AlignedText text, std::int64_t type_id) const {
    std::vector<AlignedText> pieces;
    pieces.push_back(std::move(text));
    for (const auto& piece : pre_tokenizer(std::move(pieces))) {
      if (piece.empty()) continue;
      for (const auto& [id, range, is_text] : model->tokenize(piece.text())) {
        auto token = is_text ? to_utf8(piece.text().substr(range.begin, range.size())) : text_in_vocabulary(id);
        add(encoding, {.id = id, .token = std::move(token), .range = piece.original(range)}, type_id);
      }
    }
  }

  /// A token that the model finds is shown as in its vocabulary, even if it is an added token as well.
  const std::string& text_in_vocabulary(std::int64_t id) const {
    const auto found = vocabulary_texts.find(id);
    return found != vocabulary_texts.end() ? found->second : *tokens.find(id);
  }

  /// An added token is shown with the spaces that it takes in.
  void add_whole(Encoding& encoding, std::int64_t id, const AlignedText& text, std::int64_t type_id) const {
    add(encoding, {.id = id, .token = to_utf8(text.text()), .range = text.original({0, text.size()})}, type_id);
  }

  struct FoundToken {
    std::int64_t id;
    std::string token;
    TextRange range;
  };
  void add(Encoding& encoding, const FoundToken& found, std::int64_t type_id) const {
    encoding.ids.push_back(found.id);
    encoding.tokens.push_back(found.token);
    encoding.type_ids.push_back(type_id);
    encoding.attention_mask.push_back(1);
    encoding.special_tokens_mask.push_back(0);
    encoding.offsets.emplace_back(found.range.begin, found.range.end);
  }

  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<PostProcessor> post_processor;
  Decoder decoder;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  std::vector<AddedToken> added;
  AddedTokenFinder as_written, as_normalized;
  TokenTable tokens;                                               ///< as the decoder takes them
  std::unordered_map<std::int64_t, std::string> vocabulary_texts;  ///< of added tokens that the vocabulary has as well
  Vocabulary added_ids;
  std::set<std::int64_t> special;
};

Tokenizer::Tokenizer(const std::filesystem::path& path) {
  const auto stored = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  const auto gguf = path != stored && std::filesystem::exists(stored) ? "" : formats::gguf_file_at(path);
  const auto file = gguf.empty() ? stored : gguf;
  auto root = gguf.empty() ? read_tokenizer(file) : tokenizer_in_gguf(file);
  const auto lists = take_lists(root);
  parts_ = std::make_shared<const Parts>(ConfigFields(nlohmann::ordered_json(root), text::concat(file), ""), lists);
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<Encoding> one = {parts_->encode(text, {}, {add_special_tokens, has_limits_})};
  if (parts_->padding && has_limits_) pad(*parts_->padding, one);
  return std::move(one.front());
}

Encoding Tokenizer::encode(const TextInput& input, bool add_special_tokens) const {
  return std::move(encode_batch({input}, add_special_tokens).front());
}

std::vector<Encoding> Tokenizer::encode_batch(const std::vector<TextInput>& inputs, bool add_special_tokens,
                                              std::size_t threads) const {
  std::vector<Encoding> encodings(inputs.size());
  std::vector<std::exception_ptr> errors(inputs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (auto i = next++; i < inputs.size(); i = next++) {
      try {
        encodings[i] = parts_->encode(inputs[i].text, inputs[i].pair, {add_special_tokens, has_limits_});
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, inputs.size()); ++i) others.emplace_back(work);
    work();
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  if (parts_->padding && has_limits_) pad(*parts_->padding, encodings);
  return encodings;
}

std::string Tokenizer::decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const auto id : ids) {
    if (skip_special_tokens && parts_->special.contains(id)) continue;
    if (const auto* token = parts_->tokens.find(id)) tokens.push_back(*token);
  }
  return text::join(parts_->decoder(std::move(tokens)), "");
}

std::optional<std::int64_t> Tokenizer::id_of(const std::string& token) const {
  for (const auto* vocabulary : {&parts_->added_ids, &parts_->model->vocabulary()}) {
    const auto found = vocabulary->find(token);
    if (found != vocabulary->end()) return found->second;
  }
  return {};
}

std::optional<std::string> Tokenizer::token_of(std::int64_t id) const {
  const auto* token = parts_->tokens.find(id);
  return token == nullptr ? std::nullopt : std::optional(*token);
}

std::size_t Tokenizer::vocabulary_size() const { return parts_->tokens.size(); }

std::int64_t Tokenizer::largest_id() const { return parts_->tokens.largest_id(); }

Tokenizer Tokenizer::without_limits() const {
  auto same = *this;
  same.has_limits_ = false;
  return same;
}

}  // namespace hortator::models
