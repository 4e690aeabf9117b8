#include "parallel/context/ring_attention.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <hortator/error.hpp>
#include <limits>
#include <optional>

#include "mpi/local_work.hpp"
#include "parallel/context/ring_gradients.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

AttentionMeans of_no_keys(const RingOperands& mine) {
  const auto options = options_of_sums(mine);
  auto sizes = mine.queries.sizes().vec();
  sizes.back() = mine.values.size(-1);
  const auto output = at::zeros(sizes, options);
  sizes.back() = 1;
  return {.output = output, .logsumexp = at::full(sizes, -std::numeric_limits<double>::infinity(), options)};
}

void add_block(const AttentionMeans& all, const RingOperands& mine, const TravellingBlocks& blocks, const Ring& ring) {
  for (const auto& tile : tiles_of(ring, blocks.source())) {
    merge({.output = rows(all.output, tile.queries), .logsumexp = rows(all.logsumexp, tile.queries)},
          attend(block_of(mine, blocks.tensors(), ring, tile)));
    ring.group.communicator_of(mine.queries).advance();
  }
}

/// The attention of this rank's queries to the keys and values of all ranks, which travel from each rank to the next
/// while it computes with those that it has. An error of one rank, memory that runs out included, is thrown by all.
/// Without autograd. @collective
AttentionMeans attend_in_ring(const RingOperands& mine, const Ring& ring) {
  std::optional<TravellingBlocks> blocks;
  AttentionMeans all;
  mpi::all_or_none(ring.group.host, [&] {
    blocks.emplace(travelling(mine, ring));
    all = of_no_keys(mine);
  });
  mpi::LocalWork work;
  for (int step = 0; step < ring.group.size(); ++step) {
    const bool is_last = step + 1 == ring.group.size();
    if (!is_last) blocks->start();
    work.run([&] { add_block(all, mine, *blocks, ring); });
    if (!is_last) blocks->finish();
  }
  work.agree(ring.group.host);
  return all;
}

struct HeldRing : torch::CustomClassHolder {
  explicit HeldRing(const Ring& held) : ring(held) {}
  Ring ring;
};

/// Autocast would compute the sums in 16 bits.
struct NoAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

struct RingFunction : torch::autograd::Function<RingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const std::optional<at::Tensor>& mask, const Ring& ring) {
    const NoAutocast here;
    const auto all = attend_in_ring({.queries = queries, .keys = keys, .values = values, .mask = mask}, ring);
    const auto output = all.output.to(queries.scalar_type());
    context->saved_data["ring"] = c10::IValue::make_capsule(c10::make_intrusive<HeldRing>(ring));
    context->save_for_backward({queries, keys, values, mask.value_or(at::Tensor()), output, all.logsumexp});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (c10::GradMode::is_enabled()) {
      throw UsageError({.what = "Attention in a ring was differentiated with create_graph",
                        .why = "its backward keeps no graph",
                        .hint = "set parallel.context_attention to gather"});
    }
    const NoAutocast here;
    const auto saved = context->get_saved_variables();
    const auto held = context->saved_data["ring"].toCapsule();
    RingOperands mine{.queries = saved[0], .keys = saved[1], .values = saved[2]};
    if (saved[3].defined()) mine.mask = saved[3];
    const bool learns_mask = mine.mask && context->needs_input_grad(3);
    const auto all = gradients_in_ring(mine, {.output = saved[4], .logsumexp = saved[5]}, gradients[0], learns_mask,
                                       static_cast<const HeldRing&>(*held).ring);
    return {all.queries.to(saved[0].scalar_type()), all.keys.to(saved[1].scalar_type()),
            all.values.to(saved[2].scalar_type()), learns_mask ? all.mask.to(saved[3].scalar_type()) : at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor ring_attention(const RingOperands& mine, const Ring& ring) {
  return RingFunction::apply(mine.queries, mine.keys, mine.values, mine.mask, ring);
}

}  // namespace hortator::parallel
