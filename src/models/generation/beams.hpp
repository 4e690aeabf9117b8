#pragma once

#include <hortator/models/generate.hpp>
#include <set>

namespace hortator::models {

/// One more token for a running beam, and the sum of log-probabilities with it.
struct BeamCandidate {
  float score = 0;
  std::size_t beam = 0;
  std::int64_t token = 0;
};

/// A text that beam search continues, or has finished. A finished one has its score after the length penalty.
struct Beam {
  float score = 0;
  Tokens text = {};
  std::size_t origin = 0;  ///< the running beam that it was in the step before
};

/// The beams of one prompt: which go on, which have ended, and when the search is over. Pure.
class Beams {
 public:
  using Ends = std::function<bool(const Tokens& text)>;
  /// `ends` returns whether a text ends with its last token.
  Beams(const GenerateOptions& options, Ends ends);

  /// Takes the candidates of a step, the best first.
  void advance(const std::vector<BeamCandidate>& candidates);

  const std::vector<Beam>& running() const { return running_; }
  bool is_over() const;
  /// The finished texts, the best first.
  const std::vector<Beam>& finished() const { return finished_; }

 private:
  bool is_full() const { return finished_.size() == count_; }
  float with_penalty(float score, std::size_t length) const;
  bool may_improve() const;

  std::size_t count_;  ///< of beams
  std::size_t max_length_;
  double length_penalty_;
  EarlyStopping early_stopping_;
  Ends ends_;
  std::vector<Beam> running_, finished_;
  bool can_improve_ = true;
};

}  // namespace hortator::models
