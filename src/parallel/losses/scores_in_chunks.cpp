#include "parallel/losses/scores_in_chunks.hpp"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <limits>

#include "parallel/tensor/rules/class_numbers.hpp"

namespace hortator::parallel::losses {
namespace {

/// Some rows, and their targets as positions in this rank's classes.
struct Chunk {
  at::Tensor rows;        ///< in the type of the products
  at::Tensor index;       ///< [rows, 1]; 0 where another rank has the target
  at::Tensor is_own;      ///< [rows, 1], 1 where this rank has the target, in the type of the loss
  at::Tensor is_ignored;  ///< [rows, 1]
};

Chunk chunk_of(const at::Tensor& rows, const ScoresOptions& options, std::int64_t begin, at::ScalarType loss_type) {
  const auto count = std::min(options.rows_at_once, rows.size(0) - begin);
  const auto target = options.target.narrow(0, begin, count);
  Chunk chunk{.rows = rows.narrow(0, begin, count).to(options.type),
              .index = target.unsqueeze(1),
              .is_own = {},
              .is_ignored = options.is_ignored.narrow(0, begin, count).unsqueeze(1)};
  auto is_other = chunk.is_ignored;
  if (options.ranks) {
    const auto own = rules::own_positions(target, options.part, *options.ranks);
    chunk.index = own.index.unsqueeze(1);
    is_other = is_other.logical_or(own.is_other.unsqueeze(1));
  }
  chunk.is_own = is_other.logical_not().to(loss_type);
  return chunk;
}

/// The logarithms of the probabilities of this rank's classes. @collective over the ranks
at::Tensor log_probabilities(const at::Tensor& scores, at::ScalarType type, const SharedRanks& ranks) {
  auto logarithms = at::log_softmax(scores, 1, type);
  if (!ranks) return logarithms;
  // of the sum of exp() over this rank's classes
  const auto own = scores.select(1, 0).to(type) - logarithms.select(1, 0);
  const auto most = ranks->max(own);
  const auto all = ranks->sum((own - most).exp()).log() + most;
  return logarithms.add_((own - all).unsqueeze(1));
}

/// Adds what some rows contribute to the sum and its gradients.
class Adding {
 public:
  Adding(const ScoresOptions& options, const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias)
      : options_(options),
        loss_type_(at::toOpMathType(options.type)),
        own_(options.packed ? options.classes : weight.size(0)),
        filling_((options.multiple - own_ % options.multiple) % options.multiple),
        weight_(options.packed ? weight : filled(weight.to(options.type), {0, 0, 0, filling_})),
        bias_(bias.defined() ? filled(bias.to(options.type), {0, filling_}) : bias),
        found_{.sum = at::zeros({}, rows.options().dtype(loss_type_))} {
    const auto sums = weight.options().dtype(loss_type_);
    if (options.wants_rows) found_.of_rows = at::empty_like(rows);
    if (options.wants_weight) found_.of_weight = at::zeros(weight_.sizes(), sums);
    if (options.wants_bias) found_.of_bias = at::zeros(bias_.sizes(), sums);
  }

  void add(const at::Tensor& rows, std::int64_t begin) {
    const auto chunk = chunk_of(rows, options_, begin, loss_type_);
    auto scores = scores_of(chunk.rows);
    if (filling_ > 0) scores.narrow(1, own_, filling_).fill_(-std::numeric_limits<double>::infinity());
    auto logarithms = log_probabilities(scores, loss_type_, options_.ranks);
    scores.reset();
    add_loss(chunk, logarithms);
    if (!options_.wants_rows && !options_.wants_weight && !options_.wants_bias) return;
    const auto gradient = gradient_of_scores(chunk, logarithms);
    logarithms.reset();
    add_gradients(chunk, gradient, begin);
  }

  LossOfScores result(at::ScalarType weight_type) && {
    if (options_.ranks) found_.sum = options_.ranks->sum(found_.sum);
    for (auto* sum : {&found_.of_weight, &found_.of_bias})
      if (sum->defined()) *sum = sum->narrow(0, 0, own_).to(weight_type);
    return std::move(found_);
  }

 private:
  static at::Tensor filled(const at::Tensor& tensor, at::IntArrayRef filling) {
    return filling.back() > 0 ? at::constant_pad_nd(tensor, filling) : tensor;
  }
  at::Tensor scores_of(const at::Tensor& rows) const {
    if (options_.packed) return at::linear(rows, weight_, bias_);  // which its operator computes
    return bias_.defined() ? at::addmm(bias_, rows, weight_.t()) : at::mm(rows, weight_.t());
  }
  at::Tensor gradient_of_rows(const at::Tensor& gradient) const {
    return options_.packed ? options_.packed->gradient_of_inputs(weight_, gradient) : at::mm(gradient, weight_);
  }
  at::Tensor of_own_classes(const at::Tensor& scores) const { return scores.narrow(1, 0, own_); }
  double smoothing_of_a_class() const { return options_.smoothing / static_cast<double>(options_.classes); }

  void add_loss(const Chunk& chunk, const at::Tensor& logarithms) {
    const auto of_targets = logarithms.gather(1, chunk.index).mul_(chunk.is_own);
    found_.sum.sub_(of_targets.sum(), 1 - options_.smoothing);
    if (options_.smoothing == 0) return;
    const auto of_all = of_own_classes(logarithms).sum(1, /*keepdim=*/true).masked_fill_(chunk.is_ignored, 0);
    found_.sum.sub_(of_all.sum(), smoothing_of_a_class());
  }

  // In the memory of the logarithms. Rows that are ignored are not 0 in it.
  at::Tensor gradient_of_scores(const Chunk& chunk, const at::Tensor& logarithms) const {
    auto gradient = logarithms.exp_();
    gradient.scatter_add_(1, chunk.index, chunk.is_own * (options_.smoothing - 1));
    if (options_.smoothing > 0) of_own_classes(gradient).sub_(smoothing_of_a_class());
    return gradient.to(options_.type);
  }

  void add_gradients(const Chunk& chunk, const at::Tensor& gradient, std::int64_t begin) {
    if (found_.of_rows.defined()) {
      found_.of_rows.narrow(0, begin, gradient.size(0))
          .copy_(gradient_of_rows(gradient).masked_fill_(chunk.is_ignored, 0));
    }
    if (found_.of_weight.defined())
      add_product(found_.of_weight, gradient.t(), chunk.rows.masked_fill(chunk.is_ignored, 0));
    if (found_.of_bias.defined())
      found_.of_bias.add_(at::mv(gradient.t(), chunk.is_ignored.squeeze(1).logical_not().to(options_.type)));
  }

  void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) const {
    if (options_.type == loss_type_) {
      sum.addmm_(left, right);
    } else {
      sum.add_(at::mm(left, right));
    }
  }

  const ScoresOptions& options_;
  at::ScalarType loss_type_;
  std::int64_t own_, filling_;  ///< this rank's classes, and those that fill them up, whose scores are -infinity
  at::Tensor weight_, bias_;
  LossOfScores found_;
};

}  // namespace

LossOfScores ChunkedScores::compute(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) const {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::NoGradGuard no_grad;
  Adding adding(options_, rows, weight, bias);
  for (std::int64_t begin = 0; begin < rows.size(0); begin += options_.rows_at_once) adding.add(rows, begin);
  return std::move(adding).result(options_.packed ? rows.scalar_type() : weight.scalar_type());
}

}  // namespace hortator::parallel::losses
