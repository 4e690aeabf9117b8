#include "models/generation/beam_search.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/models/key_value_cache.hpp>
#include <set>
#include <span>

#include "models/generation/beams.hpp"
#include "models/generation/next_scores.hpp"
#include "models/generation/prompts.hpp"
#include "models/generation/scores.hpp"
#include "models/generation/staged_forward.hpp"

namespace hortator::models {
namespace {

/// The search for the texts of several prompts. The rows of the batch are the running beams of one prompt after the
/// other, without prompts whose search is over.
class BeamSearch {
 public:
  BeamSearch(PretrainedModel& model, std::span<const Tokens> prompts, std::size_t first, const GenerateOptions& options)
      : model_(model), options_(options), device_(model.parameters().front().device()) {
    const auto ends = *options.eos_token_ids;
    ends_.insert(ends.begin(), ends.end());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      beams_.emplace_back(options, [this, prompt = first + i](const Tokens& text) {
        return ends_.contains(text.back()) || (options_.ends && options_.ends(prompt, text));
      });
      searched_.push_back(i);
    }
    const auto [ids, mask, positions] = padded(prompts, device_);
    texts_ = ids;
    mask_ = mask;
    positions_ = positions;
    forward(ids);
  }

  void run() {
    while (true) {
      advance();
      const auto [rows, tokens] = running();
      if (rows.empty()) return;
      go_on_with(at::tensor(rows, ids_options()), at::tensor(tokens, ids_options()).unsqueeze(1));
    }
  }

  void take(std::vector<Tokens>& texts) const {
    for (const auto& beams : beams_) {
      for (std::int64_t i = 0; i < *options_.num_return_sequences; ++i)
        texts.push_back(beams.finished().at(static_cast<std::size_t>(i)).text);
    }
  }

 private:
  void forward(const at::Tensor& ids) {
    const auto outputs = logits_of(
        model_, {.input_ids = ids, .attention_mask = mask_, .position_ids = positions_, .cache = &cache_, .last = 1});
    scores_ = at::log_softmax(next_scores(outputs.logits), -1);
  }

  /// Offers each prompt its best continuations: more than there are beams, so that enough go on when some end.
  void advance() {
    auto scores = penalised(scores_, texts_, *options_.repetition_penalty);
    if (steps_++ < *options_.min_new_tokens) scores = without_tokens(scores, ends_);
    const auto each = std::max<std::int64_t>(2, 1 + static_cast<std::int64_t>(ends_.size())) * *options_.num_beams;
    std::int64_t row = 0;
    rows_before_.clear();
    for (const auto prompt : searched_) {
      const auto& running = beams_[prompt].running();
      std::vector<float> sums;
      for (const auto& beam : running) sums.push_back(beam.score);
      const auto rows = static_cast<std::int64_t>(running.size());
      const auto so_far = at::tensor(sums, at::TensorOptions(device_)).unsqueeze(1);
      beams_[prompt].advance(best(scores.narrow(0, row, rows) + so_far, each));
      rows_before_.push_back(rows);
      row += rows;
    }
  }

  static std::vector<BeamCandidate> best(const at::Tensor& scores, std::int64_t count) {
    const auto vocabulary = scores.size(1);
    const auto [values, places] = scores.flatten().topk(std::min(count, scores.numel()));
    const auto value = values.cpu(), place = places.cpu();
    std::vector<BeamCandidate> candidates;
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      const auto at = place.const_data_ptr<std::int64_t>()[i];
      candidates.push_back({.score = value.const_data_ptr<float>()[i],
                            .beam = static_cast<std::size_t>(at / vocabulary),
                            .token = at % vocabulary});
    }
    return candidates;
  }

  struct RunningRows {
    std::vector<std::int64_t> rows, tokens;  ///< the row that each comes from, and its new token
  };
  /// The beams that go on. Prompts whose search is over leave the batch.
  RunningRows running() {
    RunningRows all;
    std::vector<std::size_t> searched;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < searched_.size(); ++i) {
      const auto& beams = beams_[searched_[i]];
      if (!beams.is_over()) searched.push_back(searched_[i]);
      for (const auto& beam : beams.is_over() ? std::vector<Beam>() : beams.running()) {
        all.rows.push_back(first + static_cast<std::int64_t>(beam.origin));
        all.tokens.push_back(beam.text.back());
      }
      first += rows_before_[i];
    }
    searched_ = std::move(searched);
    return all;
  }

  void go_on_with(const at::Tensor& rows, const at::Tensor& tokens) {
    texts_ = at::cat({texts_.index_select(0, rows), tokens}, 1);
    if (mask_.defined()) mask_ = at::cat({mask_.index_select(0, rows), at::ones_like(tokens)}, 1);
    positions_ = positions_.index_select(0, rows);
    positions_ = positions_.narrow(1, positions_.size(1) - 1, 1) + 1;
    cache_.select(rows);
    forward(tokens);
  }

  at::TensorOptions ids_options() const { return at::TensorOptions(device_).dtype(at::kLong); }

  PretrainedModel& model_;
  const GenerateOptions& options_;
  c10::Device device_;
  std::set<std::int64_t> ends_;
  std::vector<Beams> beams_;               ///< of each prompt
  std::vector<std::size_t> searched_;      ///< the prompts in the batch
  std::vector<std::int64_t> rows_before_;  ///< of each of them, before the last step
  std::int64_t steps_ = 0;
  at::Tensor texts_, mask_, positions_, scores_;
  KeyValueCache cache_;
};

}  // namespace

std::vector<Tokens> search_beams(PretrainedModel& model, const std::vector<Tokens>& prompts,
                                 const GenerateOptions& options) {
  const auto together = options.max_batch_size > 0 ? static_cast<std::size_t>(options.max_batch_size) : prompts.size();
  std::vector<Tokens> texts;
  for (std::size_t first = 0; first < prompts.size(); first += together) {
    const auto some = std::span(prompts).subspan(first, std::min(together, prompts.size() - first));
    BeamSearch search(model, some, first, options);
    search.run();
    search.take(texts);
  }
  return texts;
}

}  // namespace hortator::models
