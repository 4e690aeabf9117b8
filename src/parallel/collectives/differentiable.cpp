#include "parallel/collectives/differentiable.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>

#include "comm/transfers.hpp"
#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Capsule : torch::CustomClassHolder {
  explicit Capsule(RankMap held) : map(std::move(held)) {}
  RankMap map;
};

struct ApplyMap : torch::autograd::Function<ApplyMap> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, const RankMap& map) {
    context->saved_data["map"] = c10::IValue::make_capsule(c10::make_intrusive<Capsule>(map));
    return map.forward(tensor);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = context->saved_data["map"].toCapsule();
    return {static_cast<const Capsule&>(*held).map.backward(gradients[0]), at::Tensor()};
  }
};

at::Tensor sum_over(const at::Tensor& tensor, comm::Communicator& over) {
  auto sum = tensor.detach().clone(at::MemoryFormat::Contiguous);
  over.all_reduce(sum, comm::ReduceOp::sum).wait();
  return sum;
}

at::Tensor part_of(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim, const char* name) {
  const bool has_dimension = dim >= -tensor.dim() && dim < tensor.dim();
  if (!has_dimension || tensor.size(dim) % over.size() != 0) {
    throw UsageError({.what = text::concat(name, " along dimension ", dim, " got a tensor of sizes [",
                                           text::join(tensor.sizes()), "]"),
                      .why = text::concat("its size there must be a multiple of ", text::count(over.size(), "rank")),
                      .hint = "pad it, or change the number of ranks along the axis"});
  }
  const auto size = tensor.size(dim) / over.size();
  return tensor.narrow(dim, over.rank() * size, size);
}

// The parts along `cut` travel one after the other in memory.
at::Tensor transposed_parts(const at::Tensor& tensor, comm::Communicator& over, std::int64_t cut, std::int64_t join) {
  part_of(tensor, over, cut, "all_to_all");  // throws
  const auto sent = at::stack(tensor.detach().chunk(over.size(), cut));
  const auto received = at::empty_like(sent);
  comm::all_to_all(over, received, sent).wait();
  return at::cat(received.unbind(0), join);
}

/// @collective
at::Tensor moved_rows(const at::Tensor& tensor, comm::Communicator& over, const std::vector<std::int64_t>& rows_to,
                      const std::vector<std::int64_t>& rows_from, const mpi::AllOrNone& all_or_none) {
  auto shape = tensor.sizes().vec();
  // A negative sum is refused below, on all ranks.
  if (!shape.empty())
    shape[0] = std::max<std::int64_t>(std::accumulate(rows_from.begin(), rows_from.end(), std::int64_t{0}), 0);
  at::Tensor sent, received;
  all_or_none([&] {
    sent = tensor.detach().contiguous();
    received = at::empty(shape, tensor.options().requires_grad(false));
  });
  comm::all_to_all(over, received, sent, rows_to, rows_from).wait();
  return received;
}

at::Tensor of_root(const at::Tensor& tensor, comm::Communicator& over, int root) {
  auto copy = tensor.detach().clone(at::MemoryFormat::Contiguous);
  over.broadcast(copy, root).wait();
  return copy;
}

// What the rank `root` has, and zeros elsewhere. `use` is that of the tensor.
at::Tensor only_on(const at::Tensor& tensor, comm::Communicator& over, int root, ResultUse use) {
  return apply(
      tensor,
      {.forward = [&over, root](
                      const at::Tensor& it) { return over.rank() == root ? it.detach().clone() : at::zeros_like(it); },
       .backward =
           [&over, root, use](const at::Tensor& it) {
             return use == ResultUse::same ? broadcast(it, over, root, use) : only_on(it, over, root, use);
           }});
}

}  // namespace

at::Tensor apply(const at::Tensor& tensor, RankMap map) { return ApplyMap::apply(tensor, std::move(map)); }

at::Tensor all_reduce(const at::Tensor& tensor, comm::Communicator& over, ResultUse use) {
  return apply(tensor, {.forward = [&over](const at::Tensor& it) { return sum_over(it, over); },
                        .backward =
                            [&over, use](const at::Tensor& it) {
                              return use == ResultUse::same ? enter(it, over) : all_reduce(it, over, use);
                            }});
}

at::Tensor enter(const at::Tensor& tensor, comm::Communicator& over) {
  return apply(tensor, {.forward = [](const at::Tensor& it) { return it.detach().view_as(it); },
                        .backward = [&over](const at::Tensor& it) { return all_reduce(it, over, ResultUse::same); }});
}

at::Tensor all_gather(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim, ResultUse use) {
  return apply(tensor, {.forward = [&over, dim](const at::Tensor& it) { return comm::gather_along(over, it, dim); },
                        .backward =
                            [&over, dim, use](const at::Tensor& it) {
                              return use == ResultUse::same ? own_part(it, over, dim) : reduce_scatter(it, over, dim);
                            }});
}

at::Tensor own_part(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim) {
  return apply(tensor,
               {.forward = [&over, dim](const at::Tensor& it) { return part_of(it, over, dim, "own_part").clone(); },
                .backward = [&over, dim](const at::Tensor& it) { return all_gather(it, over, dim, ResultUse::same); }});
}

at::Tensor reduce_scatter(const at::Tensor& tensor, comm::Communicator& over, std::int64_t dim) {
  return apply(
      tensor,
      {.forward = [&over, dim](
                      const at::Tensor& it) { return comm::reduce_scatter_along(over, it, dim, comm::ReduceOp::sum); },
       .backward = [&over, dim](const at::Tensor& it) { return all_gather(it, over, dim, ResultUse::differs); }});
}

at::Tensor all_to_all(const at::Tensor& tensor, comm::Communicator& over, std::int64_t cut, std::int64_t join) {
  return apply(tensor,
               {.forward = [&over, cut, join](const at::Tensor& it) { return transposed_parts(it, over, cut, join); },
                .backward = [&over, cut, join](const at::Tensor& it) { return all_to_all(it, over, join, cut); }});
}

at::Tensor all_to_all(const at::Tensor& tensor, comm::Communicator& over, const std::vector<std::int64_t>& rows_to,
                      const std::vector<std::int64_t>& rows_from, const mpi::AllOrNone& all_or_none) {
  return apply(
      tensor,
      {.forward = [&over, rows_to, rows_from,
                   all_or_none](const at::Tensor& it) { return moved_rows(it, over, rows_to, rows_from, all_or_none); },
       .backward = [&over, rows_to, rows_from, all_or_none](
                       const at::Tensor& it) { return all_to_all(it, over, rows_from, rows_to, all_or_none); }});
}

at::Tensor broadcast(const at::Tensor& tensor, comm::Communicator& over, int root, ResultUse use) {
  return apply(tensor, {.forward = [&over, root](const at::Tensor& it) { return of_root(it, over, root); },
                        .backward =
                            [&over, root, use](const at::Tensor& it) {
                              const auto whole = use == ResultUse::same ? it : all_reduce(it, over, ResultUse::differs);
                              return only_on(whole, over, root, use);
                            }});
}

}  // namespace hortator::parallel
