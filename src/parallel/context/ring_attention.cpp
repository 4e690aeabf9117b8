#include "parallel/context/ring_attention.hpp"

#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <hortator/error.hpp>

#include "parallel/context/ring_gradients.hpp"
#include "parallel/context/ring_means.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
