#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/tokenizer/parts.hpp"

namespace hortator::models {

/// How texts with too many tokens are cut.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };
  std::size_t max_length = 0;
  Strategy strategy = Strategy::longest_first;
  bool cuts_left = false;
};

/// How texts of a batch become equally long.
struct Padding {
  std::optional<std::size_t> length = {};  ///< that of the longest if empty
  std::size_t multiple_of = 1;
  bool pads_left = false;
  std::int64_t id = 0, type_id = 0;
  std::string token = {};
};

std::optional<Truncation> make_truncation(const ConfigFields& fields);
std::optional<Padding> make_padding(const ConfigFields& fields);

/// Cuts a text, and its pair, so that with `added` special tokens they have at most max_length.
void truncate(const Truncation& truncation, std::size_t added, Encoding& first, std::optional<Encoding>& second);
void pad(const Padding& padding, std::vector<Encoding>& encodings);

}  // namespace hortator::models
