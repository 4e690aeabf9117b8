#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/export.hpp>
#include <hortator/state.hpp>
#include <hortator/training/objects.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Batched inference: many prompts answered by many ranks.

namespace hortator {

/// Options of answer_prompts().
struct AnswerOptions {
  std::int64_t batch_size = 8;  ///< maximum number of prompts in a batch
  /// Maximum padded length of a batch: its number of prompts times the longest. A single prompt may be longer. 0: no
  /// limit.
  std::int64_t max_batch_length = 0;
  /// A folder for answers until all prompts have one. A later call with the same prompts resumes from it, on any number
  /// of ranks, even if the earlier run was killed. All ranks must see the folder.
  std::filesystem::path keep = {};
};

/// Thrown if some prompts cannot be answered, or a rank cannot keep its answers. All others are answered.
template <typename Answer>
class IncompleteAnswers : public Error {
 public:
  IncompleteAnswers(const Problem& problem, int rank, std::vector<std::optional<Answer>> answers)
      : Error(problem), answers_(std::move(answers)) {
    on_rank(rank);
  }
  /// In the prompts' order, the same on all ranks.
  const std::vector<std::optional<Answer>>& answers() const { return answers_; }

 private:
  std::vector<std::optional<Answer>> answers_;
};

namespace detail {

/// What batching needs to know of a prompt.
struct PromptFacts {
  std::int64_t length = 1;
  std::uint64_t fingerprint = 0;
};

HORTATOR_API std::uint64_t fingerprint(std::string_view bytes);
HORTATOR_API void check_answer_count(std::size_t prompts, std::size_t answers);

/// Distributes prompts over ranks and batches, and collects the encoded answers.
class HORTATOR_API Answering {
 public:
  /// @collective
  Answering(const State& state, const std::vector<PromptFacts>& prompts, const AnswerOptions& options);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  using AnswerBatch = std::function<std::vector<std::string>(const std::vector<std::int64_t>& prompts)>;
  /// Answers this rank's prompts. A batch that fails is halved and tried again, down to single prompts, whose errors
  /// are kept for gather(); where ranks share batches, the error is thrown.
  void run(const AnswerBatch& answer);

  struct Outcome {
    std::vector<std::optional<std::string>> answers = {};
    std::optional<Problem> problem = {};  ///< of the lowest rank that has one
    int rank = 0;
  };
  /// Returns the answers of all ranks, on all ranks. @collective
  Outcome gather();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <typename Prompt>
std::int64_t prompt_length(const Prompt& prompt) {
  if constexpr (std::same_as<Prompt, at::Tensor>) {
    return prompt.numel();
  } else if constexpr (requires { prompt.size(); }) {
    return static_cast<std::int64_t>(prompt.size());
  } else {
    return 1;
  }
}

}  // namespace detail

/// Answers `prompts`, which must be equal on all ranks. `answer(batch)` takes a vector of prompts and returns as many
/// answers. Each rank answers its share (split_between_processes) in batches of prompts of similar length, the longest
/// first. Returns the answers in the order of the prompts, on all ranks. Prompts and answers must be
/// hortator::Serializable.
///
///     auto answers = hortator::answer_prompts(state, prompts, [&](const std::vector<std::string>& batch) {
///       return generate(model, batch);
///     });
///
/// A batch that fails is halved and tried again, so a prompt that cannot be answered costs only its own answer. All
/// ranks then throw IncompleteAnswers, which names these prompts and holds all other answers. Ranks that compute
/// batches together (along the mesh's axes tensor and context) get the same ones; there the error is thrown as it is,
/// because others may wait for the rank. @collective
template <typename Prompt, std::invocable<const std::vector<Prompt>&> AnswerBatch>
auto answer_prompts(const State& state, const std::vector<Prompt>& prompts, AnswerBatch&& answer,
                    const AnswerOptions& options = {}) {
  using Answers = std::remove_cvref_t<std::invoke_result_t<AnswerBatch&, const std::vector<Prompt>&>>;
  using Answer = typename Answers::value_type;
  detail::require_serializable<Prompt>();
  detail::require_serializable<Answer>();

  std::vector<detail::PromptFacts> facts;
  for (const auto& prompt : prompts)
    facts.push_back(
        {.length = detail::prompt_length(prompt), .fingerprint = detail::fingerprint(detail::encode(prompt))});
  detail::Answering answering(state, facts, options);
  answering.run([&](const std::vector<std::int64_t>& numbers) {
    std::vector<Prompt> batch;
    for (const auto number : numbers) batch.push_back(prompts[static_cast<std::size_t>(number)]);
    const Answers answers = answer(std::as_const(batch));
    detail::check_answer_count(batch.size(), answers.size());
    std::vector<std::string> encoded;
    for (const auto& one : answers) encoded.push_back(detail::encode<Answer>(one));
    return encoded;
  });

  const auto outcome = answering.gather();
  std::vector<std::optional<Answer>> all(prompts.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (outcome.answers[i]) detail::decode(*outcome.answers[i], all[i].emplace());
  }
  if (outcome.problem) throw IncompleteAnswers<Answer>(*outcome.problem, outcome.rank, std::move(all));
  std::vector<Answer> answers;
  for (auto& one : all) answers.push_back(std::move(*one));
  return answers;
}

}  // namespace hortator
