#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <tuple>

/// Metrics over ranks. Each rank counts its own samples; the counts of all ranks are summed once, at the end:
///
///     ClassificationCounts counts(2);
///     for (auto& batch : test) counts.add(model(batch.data).argmax(-1), batch.target, test.new_samples(rank));
///     accelerator.print(accelerator.reduce(counts).f1());
///
/// The results are those of one process that has seen every sample once.
namespace hortator {

/// How often each class was predicted for each label, in host memory.
class HORTATOR_API ClassificationCounts {
 public:
  /// Classes are numbered from 0 to classes - 1.
  explicit ClassificationCounts(std::int64_t classes);

  /// Adds samples: whole numbers of one shape. Entries whose label is negative do not count (padding). Of the rows, the
  /// first `rows` count, or all: the last batch of a rank may have repetitions, see LoaderBase::new_samples(). Throws
  /// UsageError for shapes and types that do not fit, and for a class that there is not.
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

}  // namespace hortator
