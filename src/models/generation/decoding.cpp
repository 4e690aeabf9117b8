#include "models/generation/decoding.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <span>

#include "models/generation/next_scores.hpp"
#include "models/generation/prompts.hpp"
#include "models/generation/scores.hpp"
#include "models/generation/staged_forward.hpp"

namespace hortator::models {
namespace {

std::int64_t columns_of(const std::vector<Tokens>& prompts) {
  return static_cast<std::int64_t>(std::ranges::max_element(prompts, {}, &Tokens::size)->size());
}

/// Rows below others, all ending at the same column. `fill` gives the columns before a shorter one from its first.
template <typename Fill>
at::Tensor below(const at::Tensor& above, const at::Tensor& rows, const Fill& fill) {
  if (!above.defined()) return rows;
  const auto time = std::max(above.size(1), rows.size(1));
  const auto widened = [&](const at::Tensor& x) {
    const auto missing = time - x.size(1);
    return missing == 0 ? x : at::cat({fill(x.narrow(1, 0, 1)).expand({x.size(0), missing}), x}, 1);
  };
  return at::cat({widened(above), widened(rows)}, 0);
}

at::Tensor below(const at::Tensor& above, const at::Tensor& rows) {
  return above.defined() ? at::cat({above, rows}, 0) : rows;
}

at::Tensor last_column(const at::Tensor& x) { return x.narrow(1, x.size(1) - 1, 1); }

}  // namespace

Decoding::Decoding(PretrainedModel& model, const std::vector<Tokens>& prompts, const GenerateOptions& options)
    : model_(model),
      prompts_(prompts),
      options_(options),
      device_(model.parameters().front().device()),
      numbers_(options.prompt_numbers),
      new_(prompts.size()),
      cache_(options.static_cache ? columns_of(prompts) + *options.max_new_tokens : 0) {
  const auto ends = *options.eos_token_ids;
  ends_.insert(ends.begin(), ends.end());
  for (auto row = numbers_.size(); row < prompts.size(); ++row) numbers_.push_back(row);
}

std::vector<Tokens> Decoding::run() {
  admit();
  while (!rows_.empty()) {
    choose();
    retire();
    forward();
    admit();
  }
  return std::move(new_);
}

std::int64_t Decoding::length_of(std::size_t prompt) const {
  return static_cast<std::int64_t>(prompts_[prompt].size() + new_[prompt].size());
}

std::int64_t Decoding::length_of_longest() const {
  std::int64_t longest = 0;
  for (const auto prompt : rows_) longest = std::max(longest, length_of(prompt));
  return longest;
}

bool Decoding::has_padding() const {
  return std::ranges::any_of(rows_, [&](auto prompt) { return length_of(prompt) < texts_.size(1); });
}

std::size_t Decoding::free_rows() const {
  const auto waiting = prompts_.size() - next_prompt_;
  if (options_.max_batch_size == 0) return waiting;
  return std::min(waiting, static_cast<std::size_t>(options_.max_batch_size) - rows_.size());
}

/// Reads the next prompts with a cache of their own, and adds them to the batch.
void Decoding::admit() {
  const auto count = free_rows();
  if (count == 0) return;
  const auto [ids, mask, positions] = padded(std::span(prompts_).subspan(next_prompt_, count), device_);
  KeyValueCache own;
  auto& cache = rows_.empty() ? cache_ : own;
  if (rows_.empty()) cache_.clear();
  const auto outputs = logits_of(
      model_, {.input_ids = ids, .attention_mask = mask, .position_ids = positions, .cache = &cache, .last = 1});
  if (!rows_.empty()) cache_.append_rows(own);
  if (rows_.empty()) texts_ = mask_ = positions_ = scores_ = at::Tensor();
  texts_ = below(texts_, ids, [](const at::Tensor& first) { return first; });
  mask_ = below(mask_, mask.defined() ? mask : at::ones_like(ids),
                [](const at::Tensor& first) { return at::zeros_like(first); });
  positions_ = below(positions_, last_column(positions));
  scores_ = below(scores_, next_scores(outputs.logits));
  for (std::size_t i = 0; i < count; ++i) rows_.push_back(next_prompt_++);
}

void Decoding::choose() {
  const auto next = chosen();
  texts_ = at::cat({texts_, next.unsqueeze(1)}, 1);
  mask_ = at::cat({mask_, at::ones_like(next).unsqueeze(1)}, 1);
  positions_ = positions_ + 1;
  const auto on_host = next.cpu();
  std::vector<std::optional<std::int64_t>> shown(prompts_.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const auto token = on_host.const_data_ptr<std::int64_t>()[row];
    new_[rows_[row]].push_back(token);
    shown[rows_[row]] = token;
  }
  if (options_.on_tokens) options_.on_tokens(shown);
}

bool Decoding::has_ended(std::size_t prompt) const {
  const auto& text = new_[prompt];
  const auto length = static_cast<std::int64_t>(text.size());
  const bool is_asked = options_.ends && options_.ends(prompt, text);
  return is_asked || length == *options_.max_new_tokens || ends_.contains(text.back());
}

/// Removes the rows of texts that have ended.
void Decoding::retire() {
  std::vector<std::int64_t> kept;
  for (std::size_t row = 0; row < rows_.size(); ++row)
    if (!has_ended(rows_[row])) kept.push_back(static_cast<std::int64_t>(row));
  if (kept.size() == rows_.size()) return;
  std::vector<std::size_t> prompts;
  for (const auto row : kept) prompts.push_back(rows_[static_cast<std::size_t>(row)]);
  rows_ = std::move(prompts);
  if (rows_.empty()) return;
  const auto rows = at::tensor(kept, ids_options());
  for (auto* tensor : {&texts_, &mask_, &positions_}) *tensor = tensor->index_select(0, rows);
  cache_.select(rows);
  drop_padding();
}

/// Forgets columns that are padding in all rows once they are most of the batch.
void Decoding::drop_padding() {
  const auto columns = texts_.size(1) - length_of_longest();
  if (options_.static_cache || 2 * columns < mask_.size(1)) return;
  texts_ = texts_.narrow(1, columns, texts_.size(1) - columns);
  mask_ = mask_.narrow(1, columns, mask_.size(1) - columns);
  cache_.forget(columns);
}

void Decoding::forward() {
  if (rows_.empty()) return;
  const auto outputs = logits_of(model_, {.input_ids = last_column(texts_),
                                          .attention_mask = has_padding() ? mask_ : at::Tensor(),
                                          .position_ids = positions_,
                                          .cache = &cache_,
                                          .last = 1});
  scores_ = next_scores(outputs.logits);
}

at::Tensor Decoding::chosen() const {
  const auto scores = without_ends(penalised(scores_, texts_, *options_.repetition_penalty));
  if (!*options_.sample) return scores.argmax(-1);
  std::vector<double> random;
  for (const auto prompt : rows_) random.push_back(uniform(options_.seed, numbers_[prompt], new_[prompt].size()));
  return drawn(restricted(scores, options_), at::tensor(random, ids_options().dtype(at::kDouble)));
}

/// No text ends before it has min_new_tokens.
at::Tensor Decoding::without_ends(const at::Tensor& scores) const {
  std::vector<std::int64_t> early;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (static_cast<std::int64_t>(new_[rows_[row]].size()) < *options_.min_new_tokens)
      early.push_back(static_cast<std::int64_t>(row));
  }
  if (early.empty() || ends_.empty()) return scores;
  const auto rows = at::tensor(early, ids_options());
  return scores.index_copy(0, rows, without_tokens(scores.index_select(0, rows), ends_));
}

at::TensorOptions Decoding::ids_options() const { return at::TensorOptions(device_).dtype(at::kLong); }

}  // namespace hortator::models
