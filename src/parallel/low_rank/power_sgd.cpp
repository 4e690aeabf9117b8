#include "parallel/low_rank/power_sgd.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/hash.hpp"

namespace hortator::parallel {
namespace {

at::ScalarType computed_in(const at::Tensor& gradients) {
  return gradients.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::int64_t rows_of(const at::Tensor& gradient) { return gradient.size(0); }
std::int64_t columns_of(const at::Tensor& gradient) {
  return gradient.numel() / std::max<std::int64_t>(1, rows_of(gradient));
}

at::Tensor as_matrix(const at::Tensor& gradient, at::ScalarType type) {
  return gradient.to(type).reshape({rows_of(gradient), columns_of(gradient)});
}

/// The columns' span in orthonormal columns.
at::Tensor orthonormal(const at::Tensor& columns) { return std::get<0>(at::linalg_qr(columns, "reduced")); }

/// Tensors that travel together: copied into one row, which has the ranks' means afterwards.
class Parcel {
 public:
  Parcel(const std::vector<at::Tensor>& tensors, const at::Tensor& like) {
    std::int64_t elements = 0;
    for (const auto& tensor : tensors) elements += tensor.numel();
    row_ = at::empty({elements}, like.options().dtype(computed_in(like)));
    std::int64_t begin = 0;
    for (const auto& tensor : tensors) {
      places_.push_back(row_.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      places_.back().copy_(tensor);
      begin += tensor.numel();
    }
  }
  /// @collective
  void average(BucketExchange& bucket) {
    if (row_.numel() == 0) return;
    bucket.sum(row_);
    row_.div_(bucket.ranks);
  }
  const at::Tensor& at(std::size_t i) const { return places_[i]; }

 private:
  at::Tensor row_;
  std::vector<at::Tensor> places_;
};

}  // namespace

PowerSgd::PowerSgd(const PowerSGDOptions& options) : options_(options) {}

bool PowerSgd::pays(const at::Tensor& gradient) const {
  if (gradient.dim() < 2 || gradient.numel() == 0) return false;
  const auto factors = static_cast<double>((rows_of(gradient) + columns_of(gradient)) * options_.rank);
  return factors * options_.min_compression < static_cast<double>(gradient.numel()) &&
         options_.rank <= std::min(rows_of(gradient), columns_of(gradient));
}

// The same on all ranks.
at::Tensor PowerSgd::first_factor(const std::string& name, std::int64_t columns) const {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(
      core::mix(core::hash(name), static_cast<std::uint64_t>(options_.warm_start ? 0 : passes_)));
  return at::randn({columns, options_.rank}, generator, at::kFloat);
}

void PowerSgd::average(BucketExchange& bucket) {
  const at::NoGradGuard no_grad;
  if (bucket.index == 0) ++passes_;
  if (passes_ <= options_.start_step) {
    bucket.sum(bucket.gradients);
    bucket.gradients.div_(bucket.ranks);
    return;
  }
  std::vector<Matrix> matrices;
  std::vector<at::Tensor> others;
  for (const auto& part : bucket.parts) {
    if (pays(part.gradient)) {
      matrices.push_back(make_matrix(part));
    } else {
      others.push_back(part.gradient);
    }
  }
  average_in_factors(matrices, others, bucket);
}

PowerSgd::Matrix PowerSgd::make_matrix(const BucketPart& part) {
  auto& kept = kept_[part.name];
  const auto type = computed_in(part.gradient);
  const auto options = part.gradient.options().dtype(type);
  auto matrix = as_matrix(part.gradient, type);
  if (options_.error_feedback) {
    const bool is_new = !kept.error.defined() || kept.error.sizes() != matrix.sizes();
    matrix = is_new ? matrix.clone() : matrix + kept.error.to(options);
  }
  const bool is_new = !options_.warm_start || !kept.factor.defined() || kept.factor.size(0) != matrix.size(1) ||
                      kept.factor.size(1) != options_.rank;
  kept.factor = (is_new ? first_factor(part.name, matrix.size(1)) : kept.factor).to(options);
  auto left = at::mm(matrix, orthonormal(kept.factor));
  return {.part = &part, .kept = &kept, .value = std::move(matrix), .left = std::move(left)};
}

// What travels whole goes with the left factors. @collective over the bucket's ranks
void PowerSgd::average_in_factors(std::vector<Matrix>& matrices, std::vector<at::Tensor>& others,
                                  BucketExchange& bucket) {
  auto sent = others;
  for (const auto& matrix : matrices) sent.push_back(matrix.left);
  Parcel parcel(sent, bucket.gradients);
  parcel.average(bucket);
  for (std::size_t i = 0; i < others.size(); ++i) others[i].copy_(parcel.at(i));
  bool is_finite = true;  // the same on all ranks, which have the same sums
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    matrices[i].left = parcel.at(others.size() + i);
    is_finite = is_finite && at::isfinite(matrices[i].left).all().item<bool>();
  }
  if (is_finite) return exchange_right(matrices, bucket);
  // A step from these gradients is skipped, or bad: errors stay what they were.
  for (const auto& matrix : matrices) matrix.part->gradient.fill_(std::numeric_limits<double>::quiet_NaN());
}

// An error is what this rank's own factors miss: the mean of the ranks' errors is what the average misses.
// @collective over the bucket's ranks
void PowerSgd::exchange_right(std::vector<Matrix>& matrices, BucketExchange& bucket) {
  std::vector<at::Tensor> rights;
  for (auto& matrix : matrices) {
    matrix.left = orthonormal(matrix.left);
    rights.push_back(at::mm(matrix.value.t(), matrix.left));
    if (options_.error_feedback) matrix.kept->error = matrix.value.addmm_(matrix.left, rights.back().t(), 1, -1);
  }
  Parcel parcel(rights, bucket.gradients);
  parcel.average(bucket);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto& gradient = matrices[i].part->gradient;
    gradient.copy_(at::mm(matrices[i].left, parcel.at(i).t()).view(gradient.sizes()));
    if (options_.warm_start) matrices[i].kept->factor = parcel.at(i).clone();
  }
}

StateDict PowerSgd::state() const {
  StateDict state;
  state.put("passes", passes_);
  for (const auto& [name, kept] : kept_) {
    if (kept.error.defined()) state.put("error/" + name, kept.error.cpu());
    if (options_.warm_start) state.put("factor/" + name, kept.factor.cpu());
  }
  return state;
}

bool PowerSgd::load(const std::vector<StateDict>& of_ranks, std::optional<std::size_t> mine) {
  kept_.clear();
  const auto& first = of_ranks.at(mine.value_or(0));
  passes_ = first.get<std::int64_t>("passes");
  const auto factors = first.under("factor");
  for (const auto& [name, value] : factors.values()) kept_[name].factor = std::get<at::Tensor>(value).clone();
  bool lacks_some = false;
  const auto errors = first.under("error");
  for (const auto& [name, value] : errors.values()) {
    auto error = std::get<at::Tensor>(value).clone();
    for (std::size_t rank = 0; !mine && rank < of_ranks.size(); ++rank) {
      const auto path = "error/" + name;
      const auto& state = of_ranks[rank];
      const bool fits = state.contains(path) && state.get<at::Tensor>(path).sizes() == error.sizes();
      if (!fits) {
        error.reset();
        break;
      }
      if (rank > 0) error.add_(state.get<at::Tensor>(path));
    }
    lacks_some = lacks_some || !error.defined();
    if (error.defined()) kept_[name].error = mine ? error : error.div_(static_cast<double>(of_ranks.size()));
  }
  return lacks_some;
}

std::function<void()> PowerSgd::remember() {
  auto copies = kept_;
  for (auto& [name, kept] : copies) {
    if (kept.error.defined()) kept.error = kept.error.clone();
    if (kept.factor.defined()) kept.factor = kept.factor.clone();
  }
  return [this, copies, passes = passes_] {
    passes_ = passes;
    kept_.clear();
    for (const auto& [name, kept] : copies) {
      kept_[name] = {.error = kept.error.defined() ? kept.error.clone() : kept.error,
                     .factor = kept.factor.defined() ? kept.factor.clone() : kept.factor};
    }
  };
}

}  // namespace hortator::parallel
