#include "models/generation/beams.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hortator::models {

Beams::Beams(const GenerateOptions& options, Ends ends)
    : count_(static_cast<std::size_t>(*options.num_beams)),
      max_length_(static_cast<std::size_t>(*options.max_new_tokens)),
      length_penalty_(*options.length_penalty),
      early_stopping_(*options.early_stopping),
      ends_(std::move(ends)),
      running_(1) {}

void Beams::advance(const std::vector<BeamCandidate>& candidates) {
  const bool accepts = can_improve_ && !(early_stopping_ == EarlyStopping::yes && is_full());
  std::vector<Beam> next;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& [score, origin, token] = candidates[i];
    Beam beam{.score = score, .text = running_[origin].text, .origin = origin};
    beam.text.push_back(token);
    if (beam.text.size() == max_length_ || ends_(beam.text)) {
      // the others are there only so that enough beams go on
      if (!accepts || i >= count_) continue;
      beam.score = with_penalty(score, beam.text.size());
      finished_.push_back(std::move(beam));
    } else if (next.size() < count_) {
      next.push_back(std::move(beam));
    }
  }
  std::ranges::stable_sort(finished_, std::ranges::greater(), &Beam::score);
  if (finished_.size() > count_) finished_.resize(count_);
  running_ = std::move(next);
  can_improve_ = can_improve_ && may_improve();
}

bool Beams::is_over() const {
  return running_.empty() || !can_improve_ || (early_stopping_ == EarlyStopping::yes && is_full());
}

float Beams::with_penalty(float score, std::size_t length) const {
  return score / static_cast<float>(std::pow(static_cast<double>(length), length_penalty_));
}

/// Whether the best running beam may still become better than the worst finished one.
bool Beams::may_improve() const {
  if (running_.empty() || !is_full()) return true;
  const auto& best = running_.front();
  const bool grows = early_stopping_ == EarlyStopping::never && length_penalty_ > 0;
  return with_penalty(best.score, grows ? max_length_ : best.text.size()) > finished_.back().score;
}

}  // namespace hortator::models
