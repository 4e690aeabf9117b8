#include "accelerator/answers/answer_batches.hpp"

#include <algorithm>
#include <limits>

namespace hortator::accelerator {

std::vector<std::vector<std::int64_t>> batches_of(std::vector<std::int64_t> prompts,
                                                  const std::vector<detail::PromptFacts>& facts,
                                                  const AnswerOptions& options) {
  const auto length_of = [&](std::int64_t prompt) { return facts[static_cast<std::size_t>(prompt)].length; };
  std::stable_sort(prompts.begin(), prompts.end(),
                   [&](std::int64_t a, std::int64_t b) { return length_of(a) > length_of(b); });
  const auto max_length =
      options.max_batch_length > 0 ? options.max_batch_length : std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> batches;
  std::int64_t max_prompts = 0;  // prompts of the batch that is being filled
  for (const auto prompt : prompts) {
    if (batches.empty() || static_cast<std::int64_t>(batches.back().size()) == max_prompts) {
      max_prompts =
          std::clamp<std::int64_t>(max_length / std::max<std::int64_t>(length_of(prompt), 1), 1, options.batch_size);
      batches.emplace_back();
    }
    batches.back().push_back(prompt);
  }
  return batches;
}

}  // namespace hortator::accelerator
