#include "step/reproducible/shard_gradients.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "parallel/data_parallel/alias.hpp"

namespace hortator::step {
namespace {

constexpr std::int64_t gathered_elements = 4 << 20;  // of each rank in one all-gather

// The gradient of `parameter` in `flat`, which holds the gradients of all parameters one after the other.
at::Tensor gradient_in(const at::Tensor& flat, std::int64_t begin, const at::Tensor& parameter) {
  if (parameter.is_contiguous()) return parallel::alias(flat, begin, parameter, parameter.scalar_type());
  return at::empty_like(parameter.detach()).copy_(flat.narrow(0, begin, parameter.numel()).view(parameter.sizes()));
}

bool has_gradient(const at::Tensor& parameter) { return parameter.grad().defined(); }

void require_dense(const at::Tensor& gradient) {
  if (!gradient.defined() || gradient.layout() == at::kStrided) return;
  throw UsageError({.what = "A gradient is sparse, in a reproducible run",
                    .why = "such runs add up gradients element by element",
                    .hint = "construct the embedding without sparse(true), or leave out reproducible"});
}

}  // namespace

bool ShardGradients::has_gradients() const { return std::any_of(parameters_.begin(), parameters_.end(), has_gradient); }

bool ShardGradients::are_read_in(int stage) const {
  return readers_.here.empty() || std::ranges::find(readers_.here, stage) != readers_.here.end();
}

int ShardGradients::shards() const { return readers_.all == 1 ? shards_.terms() : static_cast<int>(separate_.size()); }

void ShardGradients::take_shard(int number) {
  auto gradients = flatten();
  forget();
  if (readers_.all == 1) return shards_.add(number, std::move(gradients));
  const auto [known, is_first] = separate_.try_emplace(number, gradients);
  if (!is_first) known->second += gradients;
}

void ShardGradients::forget() const {
  for (const auto& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
}

void ShardGradients::restart() {
  forget();
  if (shards_.terms() > 0) shards_.take();
  separate_.clear();
  steps_.clear();
}

// The gradients, then one flag for each parameter: whether it has a gradient.
at::Tensor ShardGradients::flatten() const {
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> marks;
  for (const auto& parameter : parameters_) {
    const auto options = parameter.options().requires_grad(false);
    require_dense(parameter.grad());
    gradients.push_back(has_gradient(parameter) ? parameter.grad().reshape({-1})
                                                : at::zeros({parameter.numel()}, options));
    marks.push_back(at::full({1}, has_gradient(parameter) ? 1 : 0, options));
  }
  gradients.insert(gradients.end(), marks.begin(), marks.end());
  return at::cat(gradients);
}

void ShardGradients::close_step(int shards) {
  if (this->shards() == 0) return;
  const bool is_whole = this->shards() == shards;
  Step step;
  for (auto& [number, gradients] : std::exchange(separate_, {})) step.push_back(std::move(gradients));
  if (readers_.all == 1) step.push_back(shards_.take());
  if (is_whole) steps_.push_back(std::move(step));
}

// Autograd adds what two uses of a parameter give before anything else is added to it.
void ShardGradients::add_other_stages() {
  if (readers_.all == 1) return;
  for (auto& step : steps_) {
    PairwiseSum sum;
    for (auto& shard : step) {
      if (readers_.ranks == nullptr) {
        sum.add(std::move(shard));
        continue;
      }
      auto all = at::empty({readers_.ranks->size(), shard.numel()}, shard.options());
      readers_.ranks->all_gather(all.view({-1}), shard).wait();
      auto total = all[0];
      for (int other = 1; other < readers_.ranks->size(); ++other) total += all[other];
      sum.add(total.clone());
      shard = at::Tensor();
    }
    step = {sum.take()};
  }
}

// Sums each step over the ranks separately, so that its rounding does not depend on the distribution of shards.
void ShardGradients::publish(comm::Communicator& communicator, double factor) {
  at::Tensor total;
  for (const auto& step : steps_) {
    auto sum = sum_over_ranks(step.at(0), communicator);
    total = total.defined() ? total.add_(sum) : sum;
  }
  steps_.clear();
  std::int64_t elements = 0;
  for (const auto& parameter : parameters_) elements += parameter.numel();
  const auto marks = total.narrow(0, elements, static_cast<std::int64_t>(parameters_.size())).to(at::kCPU, at::kFloat);
  total.mul_(factor);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i];
    if (marks.const_data_ptr<float>()[i] > 0) parameter.mutable_grad() = gradient_in(total, begin, parameter);
    begin += parameter.numel();
  }
}

at::Tensor ShardGradients::sum_over_ranks(const at::Tensor& mine, comm::Communicator& communicator) const {
  if (communicator.size() == 1) return mine;
  auto sum = at::empty_like(mine);
  for (std::int64_t begin = 0; begin < mine.numel(); begin += gathered_elements) {
    const auto elements = std::min(gathered_elements, mine.numel() - begin);
    auto all = at::empty({communicator.size(), elements}, mine.options());
    communicator.all_gather(all.view({-1}), mine.narrow(0, begin, elements)).wait();
    PairwiseSum ranks;
    for (const auto& one : all.unbind(0)) ranks.add(one);
    sum.narrow(0, begin, elements).copy_(ranks.take());
  }
  return sum;
}

}  // namespace hortator::step
