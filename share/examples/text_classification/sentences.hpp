#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/datasets/labelled_texts.hpp>
#include <hortator/models/model.hpp>
#include <hortator/models/tokenizer.hpp>
#include <hortator/parallel/context_parallel.hpp>
#include <tuple>
#include <vector>

namespace text_classification {

/// A text, or a pair, as tokens.
struct Sentence {
  std::vector<std::int64_t> ids = {}, type_ids = {};
  std::int64_t label = 0;
};

/// Padded to equal lengths.
struct Batch {
  at::Tensor input_ids = {}, attention_mask = {}, token_type_ids = {}, labels = {};

  auto fields() { return std::tie(input_ids, attention_mask, token_type_ids, labels); }
  hortator::models::ModelInputs inputs(bool has_types) const;
  /// What ranks along the axis context divide.
  std::vector<hortator::SequenceBuffer> sequences() {
    return {{&input_ids, 1}, {&attention_mask, 1}, {&token_type_ids, 1}};
  }
};

/// Joins sentences to a batch as long as the longest of them.
class Join {
 public:
  explicit Join(std::int64_t pad_token) : pad_token_(pad_token) {}
  Batch operator()(const std::vector<Sentence>& sentences) const;

 private:
  std::int64_t pad_token_;
};

/// The texts of a file as tokens, in memory.
class Sentences {
 public:
  Sentences(const hortator::LabelledTexts& texts, const hortator::models::Tokenizer& tokenizer,
            std::int64_t max_tokens);

  std::int64_t size() const { return static_cast<std::int64_t>(sentences_.size()); }
  const Sentence& get(std::int64_t i) const { return sentences_.at(static_cast<std::size_t>(i)); }

 private:
  std::vector<Sentence> sentences_;
};

}  // namespace text_classification
