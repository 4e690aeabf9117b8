#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <hortator/export.hpp>
#include <tuple>
#include <vector>

/// Metrics over ranks. Each rank counts its own samples; the counts of all ranks are merged once, at the end:
///
///     ClassificationCounts counts(2);
///     for (auto& batch : test) counts.add(model(batch.data).argmax(-1), batch.target, test.new_samples(rank));
///     accelerator.print(accelerator.merge(counts).f1());
///
/// The results are those of one process that has seen every sample once. accelerator.reduce() of the
/// counts, which have the same size on all ranks, gives the same.
namespace hortator {

/// A metric that Accelerator::merge() merges: fields() are tensors, and merge() adds what another object has counted.
template <typename Metric>
concept Mergeable = std::copy_constructible<Metric> && requires(Metric& metric, const Metric& other) {
  metric.fields();
  metric.merge(other);
};

/// How often each class was predicted for each label, in host memory.
class HORTATOR_API ClassificationCounts {
 public:
  /// Classes are numbered from 0 to classes - 1.
  explicit ClassificationCounts(std::int64_t classes);

  /// Adds samples: whole numbers of one shape. Entries whose label is negative do not count (padding). Only the
  /// first `rows` rows count, by default all: the last batch of a rank may have repetitions, see
  /// LoaderBase::new_samples(). Throws UsageError for shapes and types that do not fit, and for a class that does not
  /// exist.
  void add(const at::Tensor& predicted, const at::Tensor& labels, std::int64_t rows = -1);
  /// Adds the samples that another object has counted.
  void merge(const ClassificationCounts& other);

  std::int64_t samples() const;
  double accuracy() const;
  /// The harmonic mean of precision and recall of one class. 0 where it was neither predicted nor a label.
  double f1(std::int64_t positive = 1) const;
  double macro_f1() const;  ///< the mean over all classes that are a label or were predicted
  /// Matthews' correlation coefficient of predictions and labels, for any number of classes: 1 if all are right, 0 if
  /// they are independent, or one of them is constant.
  double matthews() const;
  /// int64 [labels, predictions]
  const at::Tensor& matrix() const { return matrix_; }

  auto fields() { return std::tie(matrix_); }

 private:
  at::Tensor matrix_;
};

/// The perplexity of a language model, exp(mean negative log-likelihood of a token), in double precision and
/// host memory.
class HORTATOR_API Perplexity {
 public:
  Perplexity();

  /// Adds a batch's loss, summed over `tokens` tokens.
  void add(const at::Tensor& loss_sum, std::int64_t tokens);
  /// Adds the predictions [..., vocabulary] of the tokens `targets` [...]; negative targets do not count.
  void add_logits(const at::Tensor& logits, const at::Tensor& targets);
  /// Adds the tokens that another object has counted.
  void merge(const Perplexity& other);

  std::int64_t tokens() const;
  double mean_loss() const;  ///< nats a token. Throws UsageError before the first token
  double value() const;

  auto fields() { return std::tie(sums_); }

 private:
  at::Tensor sums_;  ///< float64: of losses, of tokens
};

/// The area under the receiver operating characteristic of a binary classification: the probability that a positive
/// sample has a higher score than a negative one, where equal scores count half. Exact, and therefore with all scores
/// in host memory, 9 bytes a sample.
class HORTATOR_API Auroc {
 public:
  Auroc();

  /// Adds samples: scores, which may be logits, and labels (0 or 1) of one shape. Entries whose label is negative do
  /// not count. Only the first `rows` rows count, by default all. Throws UsageError for what does not fit, and for
  /// scores that are not numbers.
  void add(const at::Tensor& scores, const at::Tensor& labels, std::int64_t rows = -1);
  void merge(const Auroc& other);

  std::int64_t samples() const;
  double value() const;  ///< throws UsageError unless both classes were counted

  auto fields() {
    join();
    return std::tie(scores_, positive_);
  }

 private:
  void join() const;

  mutable at::Tensor scores_;                   ///< float64
  mutable at::Tensor positive_;                 ///< bool
  mutable std::vector<at::Tensor> new_scores_;  ///< not joined to the others yet
  mutable std::vector<at::Tensor> new_positive_;
};

/// The mean of the last numbers, such as losses: of merged ones, of the last numbers of each rank. Numbers on a device
/// are read in value() only, so that adding one waits for nothing.
class HORTATOR_API MovingMean {
 public:
  /// Over the last `window` numbers.
  explicit MovingMean(std::int64_t window);

  void add(const at::Tensor& number);
  void add(double number);
  void merge(const MovingMean& other);

  std::int64_t count() const;  ///< of the numbers in the window
  double value() const;        ///< throws UsageError before the first number

  auto fields() { return std::tie(numbers_, added_); }

 private:
  std::int64_t window_;
  at::Tensor numbers_;  ///< float64 [window], on the device of the first number
  at::Tensor added_;    ///< int64: how many have been added
};

}  // namespace hortator
