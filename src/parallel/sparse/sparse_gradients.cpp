#include "parallel/sparse/sparse_gradients.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hortator::parallel {
namespace {

/// Some rows of a parameter.
struct Rows {
  at::Tensor numbers;  ///< [rows], ascending
  at::Tensor values;   ///< [rows, ...]
};

Rows rows_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (gradient.defined()) {
    const auto coalesced = (gradient.is_sparse() ? gradient : gradient.detach().to_sparse(1)).coalesce();
    return {.numbers = coalesced.indices()[0], .values = coalesced.values()};
  }
  auto sizes = parameter.sizes().vec();
  sizes.front() = 0;
  const auto options = parameter.options().requires_grad(false);
  return {.numbers = at::empty({0}, options.dtype(at::kLong)), .values = at::empty(sizes, options)};
}

/// @collective
std::vector<std::int64_t> counts_of_all(comm::Communicator& communicator, const at::Tensor& numbers) {
  const auto all = at::empty({communicator.size()}, numbers.options());
  communicator.all_gather(all, at::full({1}, numbers.numel(), numbers.options())).wait();
  const auto on_host = all.to(at::kCPU);
  const auto* first = on_host.const_data_ptr<std::int64_t>();
  return {first, first + on_host.numel()};
}

// The rows of all ranks, in rank order. A rank's are filled up to the maximum while they travel. @collective
at::Tensor gather_rows(comm::Communicator& communicator, const at::Tensor& mine,
                       const std::vector<std::int64_t>& counts) {
  auto sizes = mine.sizes().vec();
  sizes.front() = *std::max_element(counts.begin(), counts.end());
  const auto filled = at::zeros(sizes, mine.options());
  filled.narrow(0, 0, mine.size(0)).copy_(mine);
  auto all_sizes = sizes;
  all_sizes.front() *= communicator.size();
  const auto all = at::empty(all_sizes, mine.options());
  communicator.all_gather(all, filled).wait();
  std::vector<at::Tensor> parts;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    parts.push_back(all.narrow(0, static_cast<std::int64_t>(rank) * sizes.front(), counts[rank]));
  return at::cat(parts);
}

}  // namespace

at::Tensor average_rows(comm::Communicator& communicator, const at::Tensor& parameter, const at::Tensor& mine) {
  const auto rows = rows_of(parameter, mine);
  const auto counts = counts_of_all(communicator, rows.numbers);
  const auto numbers = gather_rows(communicator, rows.numbers, counts);
  // Divided first where the sum of all ranks' gradients could overflow.
  const bool divides_first = rows.values.scalar_type() == at::kHalf;
  const auto sent = divides_first ? rows.values / communicator.size() : rows.values;
  const auto values = gather_rows(communicator, sent, counts);
  auto sum =
      at::sparse_coo_tensor(numbers.unsqueeze(0), values, parameter.sizes(), values.options().layout(at::kSparse))
          .coalesce();
  if (!divides_first) sum.values().div_(communicator.size());
  return sum;
}

}  // namespace hortator::parallel
