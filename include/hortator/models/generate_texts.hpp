#pragma once

#include <functional>
#include <hortator/export.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/tokenizer.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::models {

/// Options of generate_texts().
struct TextOptions {
  GenerateOptions generation = {};
  std::vector<std::string> stop_strings = {};  ///< a text ends with the first of these that it contains
  bool add_special_tokens = true;              ///< to prompts; not to those that a chat template has made
  /// Called with a prompt's new text as it comes, in whole characters. Where a model makes bytes that are not UTF-8,
  /// the text that is returned may have other replacement characters.
  std::function<void(std::size_t prompt, std::string_view more)> on_text = {};
};

/// Continues each prompt and returns the new text, without special tokens: what Tokenizer::decode makes of the new
/// tokens, num_return_sequences texts a prompt, one prompt after the other. @collective where generate() is.
HORTATOR_API std::vector<std::string> generate_texts(PretrainedModel& model, const Tokenizer& tokenizer,
                                                     const std::vector<std::string>& prompts,
                                                     const TextOptions& options = {});

}  // namespace hortator::models
