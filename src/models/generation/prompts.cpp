#include "models/generation/prompts.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::models {

PaddedPrompts padded(std::span<const Tokens> prompts, c10::Device device) {
  const auto longest = std::ranges::max_element(prompts, {}, &Tokens::size)->size();
  const auto rows = static_cast<std::int64_t>(prompts.size()), time = static_cast<std::int64_t>(longest);
  auto ids = at::empty({rows, time}, at::kLong), mask = at::zeros({rows, time}, at::kLong);
  bool has_padding = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto& prompt = prompts[static_cast<std::size_t>(row)];
    const auto padding = time - static_cast<std::int64_t>(prompt.size());
    auto* to = ids.mutable_data_ptr<std::int64_t>() + row * time;
    std::fill_n(to, padding, prompt.front());
    std::ranges::copy(prompt, to + padding);
    mask[row].narrow(0, padding, time - padding).fill_(1);
    has_padding = has_padding || padding > 0;
  }
  const auto positions = (mask.cumsum(-1) - 1).clamp_min(0);
  return {
      .ids = ids.to(device), .mask = has_padding ? mask.to(device) : at::Tensor(), .positions = positions.to(device)};
}

void require_prompts(const std::vector<Tokens>& prompts, const ModelConfig& config, std::int64_t max_new_tokens) {
  if (prompts.empty()) throw UsageError({.what = "generate() got no prompts"});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto& prompt = prompts[i];
    if (prompt.empty())
      throw UsageError(
          {.what = text::concat("Prompt ", i, " has no tokens"), .hint = "begin it with a token, such as bos"});
    const auto wrong = std::ranges::find_if(prompt, [&](auto id) { return id < 0 || id >= config.vocabulary; });
    if (wrong != prompt.end()) {
      throw UsageError({.what = text::concat("Prompt ", i, " has the token ", *wrong),
                        .why = text::concat("the model has the tokens 0 to ", config.vocabulary - 1),
                        .hint = "use the tokenizer of this model"});
    }
    const auto all = static_cast<std::int64_t>(prompt.size()) + max_new_tokens;
    if (config.has_learned_positions && all > config.max_positions) {
      throw UsageError({.what = text::concat("Prompt ", i, " has ", prompt.size(), " tokens, and ", max_new_tokens,
                                             " are to follow"),
                        .why = text::concat("the model has only ", config.max_positions, " positions"),
                        .hint = "shorten the prompt, or lower max_new_tokens"});
    }
  }
}

}  // namespace hortator::models
