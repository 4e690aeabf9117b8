#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hortator::models {

/// A text as tokens. All vectors have one entry a token.
struct Encoding {
  std::vector<std::int64_t> ids = {};
  std::vector<std::string> tokens = {};
  std::vector<std::int64_t> type_ids = {};             ///< 1 for a pair's second text
  std::vector<std::int64_t> attention_mask = {};       ///< 0 for padding
  std::vector<std::int64_t> special_tokens_mask = {};  ///< 1 for tokens that were added to the text
  /// Where the token is in the text: its first character, and the one after its last, in code points.
  std::vector<std::pair<std::size_t, std::size_t>> offsets = {};
};

/// A text, or a pair of texts.
struct TextInput {
  std::string text = {};
  std::optional<std::string> pair = {};
};

/// The tokenizer of a checkpoint: what its tokenizer.json or its GGUF file describes. Immutable, so threads may share
/// it.
class HORTATOR_API Tokenizer {
 public:
  /// Reads a tokenizer.json, or the one in a folder; or a GGUF file, or the one in a folder without a tokenizer.json.
  /// Throws an error that names the part of the file that is not supported. Needs a build with ICU.
  explicit Tokenizer(const std::filesystem::path& path);

  /// Throws UsageError for text that is not UTF-8.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  Encoding encode(const TextInput& input, bool add_special_tokens = true) const;
  /// The same for each, by several threads; then padded to equal lengths if the file asks for it.
  std::vector<Encoding> encode_batch(const std::vector<TextInput>& inputs, bool add_special_tokens = true,
                                     std::size_t threads = 1) const;
  /// Tokens that the vocabulary does not have are left out.
  std::string decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens = true) const;

  std::optional<std::int64_t> id_of(const std::string& token) const;
  std::optional<std::string> token_of(std::int64_t id) const;
  std::size_t vocabulary_size() const;  ///< with added tokens
  std::int64_t largest_id() const;

  /// The same tokenizer, which neither cuts texts nor pads them.
  Tokenizer without_limits() const;

  struct Parts;

 private:
  std::shared_ptr<const Parts> parts_;
  bool has_limits_ = true;
};

/// Makes text of tokens that come one after the other. A character comes out once all of its bytes have come.
class HORTATOR_API TextStream {
 public:
  explicit TextStream(Tokenizer tokenizer, bool skip_special_tokens = true)
      : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

  /// The text that the token completes; often empty.
  std::string push(std::int64_t id);
  /// The text of bytes that no character completes.
  std::string finish();

 private:
  std::string after_shown(const std::string& text) const;

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::vector<std::int64_t> ids_ = {};  ///< the last ones: how a token is written may depend on those before
  std::size_t settled_ = 0;             ///< how many of them have come out
  std::string shown_ = {};              ///< their text
};

}  // namespace hortator::models
