#pragma once

#include <cstdint>
#include <hortator/training/answers.hpp>
#include <vector>

namespace hortator::accelerator {

/// Distributes prompts, given by their numbers, to batches: prompts of similar length together, so that little padding
/// is needed; the longest first, so that a batch which does not fit into memory fails at once.
std::vector<std::vector<std::int64_t>> batches_of(std::vector<std::int64_t> prompts,
                                                  const std::vector<detail::PromptFacts>& facts,
                                                  const AnswerOptions& options);

}  // namespace hortator::accelerator
