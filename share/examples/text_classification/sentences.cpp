#include "sentences.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <string>

namespace text_classification {

hortator::models::ModelInputs Batch::inputs(bool has_types) const {
  hortator::models::ModelInputs inputs{.input_ids = input_ids, .attention_mask = attention_mask};
  if (has_types) inputs.token_type_ids = token_type_ids;
  return inputs;
}

Batch Join::operator()(const std::vector<Sentence>& sentences) const {
  std::size_t longest = 0;
  for (const auto& sentence : sentences) longest = std::max(longest, sentence.ids.size());
  const auto rows = static_cast<std::int64_t>(sentences.size()), time = static_cast<std::int64_t>(longest);
  Batch batch{.input_ids = at::full({rows, time}, pad_token_, at::kLong),
              .attention_mask = at::zeros({rows, time}, at::kLong),
              .token_type_ids = at::zeros({rows, time}, at::kLong),
              .labels = at::empty({rows}, at::kLong)};
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto& sentence = sentences[static_cast<std::size_t>(row)];
    const auto length = static_cast<std::int64_t>(sentence.ids.size());
    batch.input_ids[row].narrow(0, 0, length).copy_(at::tensor(sentence.ids, at::kLong));
    batch.token_type_ids[row].narrow(0, 0, length).copy_(at::tensor(sentence.type_ids, at::kLong));
    batch.attention_mask[row].narrow(0, 0, length).fill_(1);
    batch.labels[row] = sentence.label;
  }
  return batch;
}

Sentences::Sentences(const hortator::LabelledTexts& texts, const hortator::models::Tokenizer& tokenizer,
                     std::int64_t max_tokens) {
  for (std::int64_t i = 0; i < texts.size(); ++i) {
    const auto& text = texts.get(i);
    auto tokens = tokenizer.encode({.text = text.text, .pair = text.pair});
    Sentence sentence{.label = text.label};
    for (std::size_t place = 0; place < tokens.ids.size(); ++place) {
      if (tokens.attention_mask[place] == 0) continue;  // padded by tokenizer.json
      sentence.ids.push_back(tokens.ids[place]);
      sentence.type_ids.push_back(tokens.type_ids[place]);
    }
    if (static_cast<std::int64_t>(sentence.ids.size()) > max_tokens) {
      throw hortator::UsageError({.what = "Text " + std::to_string(i + 1) + " has " +
                                          std::to_string(sentence.ids.size()) + " tokens, and the model has only " +
                                          std::to_string(max_tokens) + " positions",
                                  .hint = "let tokenizer.json truncate: \"truncation\""});
    }
    sentences_.push_back(std::move(sentence));
  }
}

}  // namespace text_classification
