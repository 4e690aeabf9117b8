#include "parallel/experts/token_exchange.hpp"

#include <ATen/ops/argsort.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <numeric>
#include <utility>

#include "comm/transfers.hpp"
#include "parallel/collectives/differentiable.hpp"

namespace hortator::parallel {
namespace {

/// Sums of `parts` equal parts.
std::vector<std::int64_t> sums_of_parts(const std::vector<std::int64_t>& counts, int parts) {
  const auto size = static_cast<std::ptrdiff_t>(counts.size()) / parts;
  std::vector<std::int64_t> sums;
  for (auto begin = counts.begin(); begin != counts.end(); begin += size)
    sums.push_back(std::accumulate(begin, begin + size, std::int64_t{0}));
  return sums;
}

/// What each rank sends for each of this rank's experts. @collective
std::vector<std::int64_t> exchanged(const std::vector<std::int64_t>& counts, comm::Communicator& on_cpu) {
  const auto mine = at::tensor(counts, at::kLong);
  const auto theirs = at::empty_like(mine);
  comm::all_to_all(on_cpu, theirs, mine).wait();
  const auto* begin = theirs.const_data_ptr<std::int64_t>();
  return {begin, begin + theirs.numel()};
}

}  // namespace

ArrivedRows arrange(const std::vector<std::int64_t>& arrived, int ranks) {
  const auto experts = arrived.size() / static_cast<std::size_t>(ranks);
  ArrivedRows rows{.from = sums_of_parts(arrived, ranks)};
  std::vector<std::int64_t> begins(arrived.size());
  std::exclusive_scan(arrived.begin(), arrived.end(), begins.begin(), std::int64_t{0});
  for (std::size_t expert = 0; expert < experts; ++expert) {
    const auto before = rows.order.size();
    for (auto part = expert; part < arrived.size(); part += experts) {
      for (std::int64_t i = 0; i < arrived[part]; ++i) rows.order.push_back(begins[part] + i);
    }
    rows.counts.push_back(static_cast<std::int64_t>(rows.order.size() - before));
  }
  return rows;
}

TokenExchange::TokenExchange(const std::vector<std::int64_t>& counts, std::shared_ptr<const TensorRanks> ranks)
    : ranks_(std::move(ranks)),
      to_(sums_of_parts(counts, ranks_->size())),
      arrived_(arrange(exchanged(counts, ranks_->on_cpu()), ranks_->size())) {}

at::Tensor TokenExchange::compute(const at::Tensor& rows, const ComputeExperts& experts) const {
  auto& over = ranks_->communicator_of(rows);
  const mpi::AllOrNone all_or_none = [ranks = ranks_](const auto& work) { ranks->all_or_none(work); };
  const auto arrived = all_to_all(rows, over, to_, arrived_.from, all_or_none);
  at::Tensor order, by_expert, outputs;
  all_or_none([&] {  // first: at ZeRO's stage 3 the experts' weights are gathered from ranks that hold the same ones
    order = at::tensor(arrived_.order, at::kLong);
    by_expert = arrived.index_select(0, order.to(rows.device()));
  });
  all_or_none([&] {
    by_expert = experts(by_expert, arrived_.counts);
    outputs = by_expert.index_select(0, order.argsort().to(rows.device()));
  });
  return all_to_all(outputs, over, arrived_.from, to_, all_or_none);
}

}  // namespace hortator::parallel
