#include <ATen/ATen.h>

#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/metrics.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

void require_whole(const at::Tensor& tensor, const char* name) {
  if (tensor.defined() && at::isIntegralType(tensor.scalar_type(), false)) return;
  throw UsageError({.what = text::concat(name, ": expected whole numbers, got ",
                                         tensor.defined() ? c10::toString(tensor.scalar_type()) : "no tensor"),
                    .hint = "classes are the places of the largest outputs: logits.argmax(-1)"});
}

/// The first rows, as one vector.
at::Tensor first_rows(const at::Tensor& tensor, std::int64_t rows) {
  return (rows < 0 ? tensor : tensor.narrow(0, 0, rows)).reshape({-1}).to(at::kLong);
}

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

}  // namespace

ClassificationCounts::ClassificationCounts(std::int64_t classes) {
  if (classes < 1) throw UsageError({.what = text::concat("A classification cannot have ", classes, " classes")});
  matrix_ = at::zeros({classes, classes}, at::kLong);
}

void ClassificationCounts::add(const at::Tensor& predicted, const at::Tensor& labels, std::int64_t rows) {
  require_whole(predicted, "Predictions");
  require_whole(labels, "Labels");
  const bool fits = predicted.sizes() == labels.sizes() && (rows < 0 || (labels.dim() > 0 && rows <= labels.size(0)));
  if (!fits) {
    throw UsageError({.what = text::concat("Predictions ", predicted.sizes(), " and labels ", labels.sizes(),
                                           rows < 0 ? "" : text::concat(" (", rows, " rows count)"), " do not fit"),
                      .why = "each prediction has one label"});
  }
  const auto truth = first_rows(labels, rows), found = first_rows(predicted, rows).to(truth.device());
  const auto counted = truth.ge(0);
  const auto classes = matrix_.size(0);
  const auto known = found.ge(0).logical_and(found.lt(classes)).logical_and(truth.lt(classes));
  if (known.logical_or(counted.logical_not()).logical_not().any().item<bool>())
    throw UsageError({.what = text::concat("A label or prediction is not one of the ", classes, " classes"),
                      .hint = text::concat("classes are numbered from 0 to ", classes - 1)});
  const auto cells = (truth * classes + found).masked_select(counted);
  matrix_ = matrix_ + at::bincount(cells, {}, classes * classes).view({classes, classes}).cpu();
}

void ClassificationCounts::merge(const ClassificationCounts& other) {
  if (other.matrix_.sizes() != matrix_.sizes())
    throw UsageError({.what = text::concat("Counts of ", other.matrix_.size(0), " classes cannot be added to those of ",
                                           matrix_.size(0))});
  matrix_ = matrix_ + other.matrix_;
}

std::int64_t ClassificationCounts::samples() const { return matrix_.sum().item<std::int64_t>(); }

double ClassificationCounts::accuracy() const {
  return ratio(matrix_.diagonal().sum().item<double>(), static_cast<double>(samples()));
}

double ClassificationCounts::f1(std::int64_t positive) const {
  if (positive < 0 || positive >= matrix_.size(0))
    throw UsageError({.what = text::concat("There is no class ", positive, " of ", matrix_.size(0))});
  const auto right = matrix_[positive][positive].item<double>();
  const auto labelled = matrix_[positive].sum().item<double>(),
             predicted = matrix_.select(1, positive).sum().item<double>();
  return ratio(2 * right, labelled + predicted);
}

double ClassificationCounts::macro_f1() const {
  const auto used = (matrix_.sum(0) + matrix_.sum(1)).gt(0);
  double sum = 0;
  std::int64_t classes = 0;
  for (std::int64_t i = 0; i < matrix_.size(0); ++i) {
    if (!used[i].item<bool>()) continue;
    sum += f1(i);
    ++classes;
  }
  return ratio(sum, static_cast<double>(classes));
}

double ClassificationCounts::matthews() const {
  const auto counts = matrix_.to(at::kDouble);
  const auto labelled = counts.sum(1), predicted = counts.sum(0);
  const auto all = counts.sum().item<double>();
  const auto product = [](const at::Tensor& a, const at::Tensor& b) { return (a * b).sum().item<double>(); };
  const auto covariance = counts.diagonal().sum().item<double>() * all - product(labelled, predicted);
  const auto variances = (all * all - product(predicted, predicted)) * (all * all - product(labelled, labelled));
  return ratio(covariance, std::sqrt(variances));
}

}  // namespace hortator
