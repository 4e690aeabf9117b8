#pragma once

#include <hortator/models/model.hpp>

namespace hortator::models {

/// How many rows the embeddings of a text model have.
struct EmbeddingRows {
  std::int64_t tokens = 0;
  std::int64_t positions = 0;  ///< 0: positions are not learned, and have no limit
  std::int64_t types = 0;      ///< of token_type_ids; 0: those of tokens
};

/// Throws UsageError for targets, which only a language head takes, and for inputs that a text model cannot look up:
/// tokens that are missing or not [batch, time], and
/// numbers that an embedding does not have. Numbers on a device are not read, because that would wait for it. `past` is
/// the number of tokens in the cache.
void require_text_inputs(const ModelInputs& inputs, const EmbeddingRows& rows, std::int64_t past = 0);

/// Throws UsageError for targets, and for images that are missing or not [batch, channels, height, width].
void require_images(const ModelInputs& inputs);

/// What a language head gives the model below it.
ModelInputs without_targets(ModelInputs inputs);

}  // namespace hortator::models
