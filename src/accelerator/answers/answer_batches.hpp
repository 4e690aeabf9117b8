#pragma once

#include <cstdint>
#include <hortator/training/answers.hpp>
#include <vector>

namespace hortator::accelerator {

/// Prompts by their numbers, a batch a vector: those of like length together, so that little is filled up; the longest
/// first, so that what does not fit into memory shows at once.
std::vector<std::vector<std::int64_t>> batches_of(std::vector<std::int64_t> prompts,
                                                  const std::vector<detail::PromptFacts>& facts,
                                                  const AnswerOptions& options);

}  // namespace hortator::accelerator
