#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/models/tokenizer.hpp>
#include <iosfwd>
#include <optional>
#include <string>

namespace hortator::tools {

/// What `hortator tokenize` does with a file.
struct TokenizeOptions {
  std::filesystem::path input = {};
  bool has_pairs = false;           ///< a line is two texts with a tab between them
  bool adds_special_tokens = true;  ///< as the tokenizer's file asks for
  std::size_t threads = 1;
};

/// What was read and written.
struct TokenizeCounts {
  std::uint64_t texts = 0, tokens = 0;
};

/// Writes a JSON line for each line of the input: its ids and offsets, and for pairs which text each token is of. All
/// throw UsageError with the number of a line that is not valid.
TokenizeCounts write_encodings(const models::Tokenizer& tokenizer, const TokenizeOptions& options, std::ostream& out);

/// Writes the tokens of all lines one after the other, as whole numbers of `bytes` bytes; after each line the token
/// `end`.
TokenizeCounts write_packed(const models::Tokenizer& tokenizer, const TokenizeOptions& options,
                            std::optional<std::int64_t> end, std::size_t bytes, std::ostream& out);

/// Writes a JSON line with the text for each line of the input, a JSON list of ids or an object with `ids`.
TokenizeCounts write_decoded(const models::Tokenizer& tokenizer, const TokenizeOptions& options, std::ostream& out);

}  // namespace hortator::tools
