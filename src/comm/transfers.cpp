#include "comm/transfers.hpp"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>

#include "comm/operands.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

// The ranks' rows of `tensor` along `dim`, one after the other. A wrong sum gives fewer tensors than peers expect, so
// that all ranks learn of it.
std::vector<PeerTensor> cut_along(const at::Tensor& tensor, std::int64_t dim, const std::vector<std::int64_t>& sizes) {
  std::vector<PeerTensor> parts;
  std::int64_t begin = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    parts.push_back({tensor.narrow(dim, begin, sizes[rank]), static_cast<int>(rank)});
    begin += sizes[rank];
  }
  return parts;
}

void check_sizes(const at::Tensor& tensor, std::int64_t dim, const std::vector<std::int64_t>& sizes, int ranks,
                 std::string_view operation) {
  const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const bool is_negative = std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; });
  const bool has_dimension = tensor.defined() && dim >= -tensor.dim() && dim < tensor.dim();
  if (has_dimension && sizes.size() == static_cast<std::size_t>(ranks) && !is_negative && sum == tensor.size(dim))
    return;
  throw UsageError({.what = text::concat(operation, " got ", describe(tensor), " and the sizes [", text::join(sizes),
                                         "] along dimension ", dim),
                    .why = text::concat("each of ", text::count(ranks, "rank"),
                                        " has one size, and their sum is the tensor's size along that dimension")});
}

// Parts that `make` cuts. What it throws becomes an operand that every back end refuses on all ranks, so that no rank
// waits for this one; the own error is thrown here.
template <typename Make>
Work exchange_or_refuse(Communicator& over, const Make& make) {
  std::vector<PeerTensor> sent;
  std::vector<PeerTensor> received;
  std::exception_ptr problem;
  try {
    make(sent, received);
  } catch (const std::exception&) {
    problem = std::current_exception();
    sent = {{at::Tensor(), 0}};
    received.clear();
  }
  if (!problem) return over.exchange(std::move(sent), std::move(received));
  try {
    over.exchange(std::move(sent), std::move(received)).wait();
  } catch (const std::exception&) {
    std::rethrow_exception(problem);
  }
  std::rethrow_exception(problem);
}

/// The result of a collective and this rank's tensor, or undefined tensors.
struct Operands {
  at::Tensor output, input;
};

// Runs a collective on the operands that `make` makes. If it throws, this rank calls the collective with undefined
// tensors, which a back end that finds mismatches refuses on all ranks, so that none waits for this one.
template <typename Make, typename Collective>
at::Tensor run_or_refuse(const Make& make, const Collective& collective) {
  Operands operands;
  std::exception_ptr problem;
  try {
    operands = make();
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  try {
    collective(operands).wait();
  } catch (const std::exception&) {
    if (!problem) throw;
  }
  if (problem) std::rethrow_exception(problem);
  return operands.output;
}

std::vector<std::int64_t> equal_sizes(const at::Tensor& tensor, int ranks, std::string_view operation) {
  if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) % ranks == 0)
    return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), tensor.size(0) / ranks);
  throw UsageError({.what = text::concat(operation, " got ", describe(tensor)),
                    .why = text::concat("its first dimension must be a multiple of ", text::count(ranks, "rank"))});
}

void check_dimension(const at::Tensor& tensor, std::int64_t dim, std::string_view operation) {
  if (tensor.defined() && dim >= -tensor.dim() && dim < tensor.dim()) return;
  throw UsageError({.what = text::concat(operation, " along dimension ", dim, " got ", describe(tensor)),
                    .why = "the tensor has no such dimension"});
}

void require_equal_parts(const at::Tensor& tensor, std::int64_t dim, int ranks) {
  if (tensor.size(dim) % ranks == 0) return;
  throw UsageError({.what = text::concat("reduce_scatter_along dimension ", dim, " got ", describe(tensor)),
                    .why = text::concat("its size there must be a multiple of ", text::count(ranks, "rank"))});
}

}  // namespace

Work send(Communicator& over, const at::Tensor& tensor, int from, int to) {
  std::vector<PeerTensor> sent;
  std::vector<PeerTensor> received;
  if (over.rank() == from) sent.push_back({tensor, to});
  if (over.rank() == to) received.push_back({tensor, from});
  if (from == to && over.rank() == from) return over.exchange({}, {});
  return over.exchange(std::move(sent), std::move(received));
}

Work all_to_all(Communicator& over, const at::Tensor& output, const at::Tensor& input,
                const std::vector<std::int64_t>& rows_to, const std::vector<std::int64_t>& rows_from) {
  return exchange_or_refuse(over, [&](auto& sent, auto& received) {
    check_sizes(input, 0, rows_to, over.size(), "all_to_all");
    check_sizes(output, 0, rows_from, over.size(), "all_to_all");
    sent = cut_along(input, 0, rows_to);
    received = cut_along(output, 0, rows_from);
  });
}

Work all_to_all(Communicator& over, const at::Tensor& output, const at::Tensor& input) {
  return exchange_or_refuse(over, [&](auto& sent, auto& received) {
    sent = cut_along(input, 0, equal_sizes(input, over.size(), "all_to_all"));
    received = cut_along(output, 0, equal_sizes(output, over.size(), "all_to_all"));
  });
}

std::vector<std::int64_t> rows_from(Communicator& over, const std::vector<std::int64_t>& rows_to, c10::Device device) {
  const auto mine = at::tensor(rows_to, at::kLong).to(device);
  auto theirs = at::empty_like(mine);
  all_to_all(over, theirs, mine).wait();
  const auto on_host = theirs.cpu();
  const auto* begin = on_host.const_data_ptr<std::int64_t>();
  return {begin, begin + on_host.numel()};
}

at::Tensor gather_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim) {
  const auto make = [&]() -> Operands {
    check_dimension(tensor, dim, "gather_along");
    auto shape = tensor.sizes().vec();
    shape.insert(shape.begin(), over.size());
    return {.output = at::empty(shape, tensor.options().requires_grad(false)), .input = tensor.detach()};
  };
  const auto stacked =
      run_or_refuse(make, [&](const Operands& these) { return over.all_gather(these.output, these.input); });
  if (at::maybe_wrap_dim(dim, tensor.dim()) == 0) return stacked.flatten(0, 1);
  return at::cat(stacked.unbind(0), dim);
}

at::Tensor gather_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim,
                        const std::vector<std::int64_t>& sizes) {
  at::Tensor whole;
  exchange_or_refuse(over, [&](auto& sent, auto& received) {
    check_dimension(tensor, dim, "gather_along");
    const auto first = tensor.detach().movedim(dim, 0).contiguous();
    auto shape = first.sizes().vec();
    shape[0] = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    whole = at::empty(shape, first.options());
    check_sizes(whole, 0, sizes, over.size(), "gather_along");
    for (int peer = 0; peer < over.size(); ++peer) sent.push_back({first, peer});
    received = cut_along(whole, 0, sizes);
  }).wait();
  return whole.movedim(0, dim);
}

at::Tensor reduce_scatter_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim, ReduceOp op) {
  const auto make = [&]() -> Operands {
    check_dimension(tensor, dim, "reduce_scatter_along");
    require_equal_parts(tensor, dim, over.size());
    const auto parts = at::stack(tensor.detach().chunk(over.size(), dim));
    return {.output = at::empty_like(parts[0]), .input = parts};
  };
  return run_or_refuse(make, [&](const Operands& these) { return over.reduce_scatter(these.output, these.input, op); });
}

Work scatter_along(Communicator& over, const at::Tensor& part, const at::Tensor& whole, std::int64_t dim,
                   const std::vector<std::int64_t>& sizes, int root) {
  return exchange_or_refuse(over, [&](auto& sent, auto& received) {
    if (over.rank() == root) {
      check_sizes(whole, dim, sizes, over.size(), "scatter_along");
      sent = cut_along(whole, dim, sizes);
    }
    received = {{part, root}};
  });
}

}  // namespace hortator::comm
