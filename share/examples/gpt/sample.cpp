#include "sample.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace gpt {
namespace {

// A badly trained model generates bytes that are control characters for a terminal.
char shown(char byte) { return byte == '\n' || (byte >= ' ' && byte <= '~') ? byte : '?'; }

}  // namespace

std::string sample(Gpt& model, const std::string& prompt, const SampleOptions& options) {
  at::NoGradGuard no_grad;
  model->eval();
  const auto device = model->parameters().front().device();
  std::string text = prompt;
  for (std::int64_t made = 0; made < options.length; ++made) {
    const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(text.size()), model->options().context);
    auto bytes = at::from_blob(text.data() + text.size() - seen, {1, seen}, at::kByte).to(device, at::kLong);
    auto scores = model->forward(bytes)[0][-1] / options.temperature;
    text.push_back(static_cast<char>(at::multinomial(scores.softmax(-1), 1).item<std::int64_t>()));
  }
  std::ranges::transform(text, text.begin(), shown);
  return text;
}

}  // namespace gpt
