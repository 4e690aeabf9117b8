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

// Many prompts answered by many ranks.

namespace hortator {

/// How a set of prompts is answered: of the calls below.
struct AnswerOptions {
  std::int64_t batch_size = 8;  ///< prompts that are answered at once, at most
  /// What a batch is filled up to, when its prompts have different lengths: their number times the longest, at most.
  /// A single prompt may be longer. 0: any.
  std::int64_t max_batch_length = 0;
  /// A folder in which answers are kept until all prompts have one. A later call with the same prompts goes on from
  /// what is there, on any number of ranks: also after one that was killed. All ranks must see it.
  std::filesystem::path keep = {};
};

/// Some prompts have no answer: on one rank something went wrong. The others have gone on with theirs.
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

/// What is to be known of a prompt to plan with it.
struct PromptFacts {
  std::int64_t length = 1;
  std::uint64_t fingerprint = 0;
};

HORTATOR_API std::uint64_t fingerprint(std::string_view bytes);
HORTATOR_API void check_answer_count(std::size_t prompts, std::size_t answers);

/// Who answers which prompts in which batches, and what has come of it. Answers are encoded.
class HORTATOR_API Answering {
 public:
  /// @collective
  Answering(const State& state, const std::vector<PromptFacts>& prompts, const AnswerOptions& options);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  using AnswerBatch = std::function<std::vector<std::string>(const std::vector<std::int64_t>& prompts)>;
  /// This rank's share. A batch that does not fit into memory is halved and tried again. What else goes wrong is kept
  /// for gather().
  void run(const AnswerBatch& answer);

  struct Outcome {
    std::vector<std::optional<std::string>> answers = {};
    std::optional<Problem> problem = {};  ///< of the lowest rank that has one
    int rank = 0;
  };
  /// Of all ranks, on all ranks. @collective
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

/// Answers `prompts`, which all ranks have, by `answer(batch)`: a function of some of them, as a vector, that returns
/// as many answers. Each rank does its share (split_between_processes), several prompts at once: those of like length
/// together, the longest first. The answers come back in the prompts' order, on all ranks, however many there are of
/// either. Prompts and answers are hortator::Serializable.
///
///     auto answers = hortator::answer_prompts(state, prompts, [&](const std::vector<std::string>& batch) {
///       return generate(model, batch);
///     });
///
/// Where a rank fails, the others finish their shares, and then all throw IncompleteAnswers, which names the rank and
/// the prompts and holds what was answered. @collective
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
