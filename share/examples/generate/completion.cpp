#include "completion.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace generate {
namespace {

constexpr std::int64_t end_of_line = '\n';

/// A batch of prompts of different lengths, padded on the left: all end at the same column.
struct Rows {
  at::Tensor tokens;   ///< [batch, time]
  at::Tensor padding;  ///< [batch]
};

Rows rows_of(const std::vector<std::string>& prompts, std::int64_t context, c10::Device device) {
  const auto length_of = [&](const std::string& prompt) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(prompt.size()), 1, context);
  };
  std::int64_t time = 1;
  for (const auto& prompt : prompts) time = std::max(time, length_of(prompt));
  const auto batch = static_cast<std::int64_t>(prompts.size());
  auto tokens = at::full({batch, time}, end_of_line, at::kLong);
  auto padding = at::empty({batch}, at::kLong);
  auto* token = tokens.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < batch; ++i, token += time) {
    const auto& prompt = prompts[static_cast<std::size_t>(i)];
    padding.mutable_data_ptr<std::int64_t>()[i] = time - length_of(prompt);
    const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(prompt.size()), context);
    std::transform(prompt.end() - seen, prompt.end(), token + time - seen,
                   [](char byte) { return static_cast<std::int64_t>(static_cast<unsigned char>(byte)); });
  }
  return {.tokens = tokens.to(device), .padding = padding.to(device)};
}

}  // namespace

std::vector<std::string> complete(gpt::Gpt& model, const std::vector<std::string>& prompts, std::int64_t max_bytes) {
  const at::NoGradGuard no_grad;
  model->eval();
  const auto context = model->options().context;
  auto [tokens, padding] = rows_of(prompts, context, model->parameters().front().device());
  std::vector<std::string> answers(prompts.size());
  std::vector<bool> ended(prompts.size());
  gpt::Cache cache;
  for (std::int64_t made = 0; made < max_bytes && cache.time() + tokens.size(1) <= context; ++made) {
    tokens = model->next_token(tokens, padding, cache).argmax(-1, /*keepdim=*/true);
    const auto bytes = tokens.cpu();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto byte = bytes.const_data_ptr<std::int64_t>()[i];
      ended[i] = ended[i] || byte == end_of_line;
      if (!ended[i]) answers[i].push_back(static_cast<char>(byte));
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool has_ended) { return has_ended; })) break;
  }
  return answers;
}

}  // namespace generate
