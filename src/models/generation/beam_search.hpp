#pragma once

#include <hortator/models/generate.hpp>

namespace hortator::models {

/// Beam search as in transformers: the num_return_sequences best texts of each prompt. Prompts are searched in batches
/// of max_batch_size.
std::vector<Tokens> search_beams(PretrainedModel& model, const std::vector<Tokens>& prompts,
                                 const GenerateOptions& options);

}  // namespace hortator::models
