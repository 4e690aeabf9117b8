#include "parallel/tensor/conjugates.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "parallel/tensor/tensor_state.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Keeps the ranks, and how a tensor is divided among them, from forward to backward.
struct RanksHolder final : torch::CustomClassHolder {
  RanksHolder(SharedRanks ranks, const Division& division) : ranks(std::move(ranks)), division(division) {}
  SharedRanks ranks;
  Division division;
};

constexpr auto kept = "ranks";

void keep(AutogradContext* context, const SharedRanks& ranks, const Division& division = {}) {
  context->saved_data[kept] = c10::IValue::make_capsule(c10::make_intrusive<RanksHolder>(ranks, division));
}

const RanksHolder& holder_of(AutogradContext* context) {
  return static_cast<const RanksHolder&>(*context->saved_data[kept].toCapsule());
}

// A custom function's plain argument travels in a struct, since LibTorch looks for tensors among arguments.
struct Exchange {
  SharedRanks ranks;
  Division division = {};
};

struct SpreadFunction : torch::autograd::Function<SpreadFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& whole, const Exchange& exchange) {
    keep(context, exchange.ranks);
    return whole.view_as(whole);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {sum(gradients[0], holder_of(context).ranks), {}};
  }
};

struct SumFunction : torch::autograd::Function<SumFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& addend, const Exchange& exchange) {
    keep(context, exchange.ranks);
    return exchange.ranks->sum(addend);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {spread(gradients[0], holder_of(context).ranks), {}};
  }
};

struct JoinFunction : torch::autograd::Function<JoinFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& part, const Exchange& exchange) {
    keep(context, exchange.ranks, exchange.division);
    return exchange.ranks->join(part, exchange.division);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& holder = holder_of(context);
    return {part_of(gradients[0], holder.division, holder.ranks), {}};
  }
};

struct PartFunction : torch::autograd::Function<PartFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& whole, const Exchange& exchange) {
    keep(context, exchange.ranks, exchange.division);
    return exchange.ranks->part_of(whole, exchange.division);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& holder = holder_of(context);
    return {join(gradients[0], holder.division, holder.ranks), {}};
  }
};

struct GatherFunction : torch::autograd::Function<GatherFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& part, const Exchange& exchange) {
    keep(context, exchange.ranks, exchange.division);
    return exchange.ranks->join(part, exchange.division);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& holder = holder_of(context);
    return {sum_part(gradients[0], holder.division, holder.ranks), {}};
  }
};

struct SumPartFunction : torch::autograd::Function<SumPartFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& addend, const Exchange& exchange) {
    keep(context, exchange.ranks, exchange.division);
    return exchange.ranks->sum_part(addend, exchange.division);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& holder = holder_of(context);
    return {gather(gradients[0], holder.division, holder.ranks), {}};
  }
};

/// The last tensor that was spread, and the result. Neither is kept alive.
struct LastSpread {
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl>;
  Weak whole{c10::intrusive_ptr<c10::TensorImpl>()};
  Weak spread{c10::intrusive_ptr<c10::TensorImpl>()};
  std::uint32_t version = 0;
  const TensorRanks* ranks = nullptr;

  at::Tensor find(const at::Tensor& tensor, const TensorRanks& of) const {
    const bool is_same = whole._unsafe_get_target() == tensor.unsafeGetTensorImpl() && ranks == &of &&
                         version == tensor.unsafeGetTensorImpl()->version_counter().current_version();
    if (!is_same) return {};
    auto found = spread.lock();
    return found ? at::Tensor(std::move(found)) : at::Tensor();
  }
};

thread_local LastSpread last_spread;

}  // namespace

at::Tensor spread(const at::Tensor& whole, const SharedRanks& ranks) {
  if (!whole.defined() || !has_gradient(whole)) return whole;
  if (auto known = last_spread.find(whole, *ranks); known.defined()) return known;
  auto result = SpreadFunction::apply(whole, Exchange{ranks});
  last_spread = {.whole = LastSpread::Weak(whole.getIntrusivePtr()),
                 .spread = LastSpread::Weak(result.getIntrusivePtr()),
                 .version = whole.unsafeGetTensorImpl()->version_counter().current_version(),
                 .ranks = ranks.get()};
  return result;
}

at::Tensor sum(const at::Tensor& addend, const SharedRanks& ranks) {
  return has_gradient(addend) ? SumFunction::apply(addend, Exchange{ranks}) : ranks->sum(addend);
}

at::Tensor join(const at::Tensor& part, const Division& division, const SharedRanks& ranks) {
  return has_gradient(part) ? JoinFunction::apply(part, Exchange{ranks, division}) : ranks->join(part, division);
}

at::Tensor part_of(const at::Tensor& whole, const Division& division, const SharedRanks& ranks) {
  return has_gradient(whole) ? PartFunction::apply(whole, Exchange{ranks, division}) : ranks->part_of(whole, division);
}

at::Tensor gather(const at::Tensor& part, const Division& division, const SharedRanks& ranks) {
  return has_gradient(part) ? GatherFunction::apply(part, Exchange{ranks, division}) : ranks->join(part, division);
}

at::Tensor sum_part(const at::Tensor& addend, const Division& division, const SharedRanks& ranks) {
  return has_gradient(addend) ? SumPartFunction::apply(addend, Exchange{ranks, division})
                              : ranks->sum_part(addend, division);
}

}  // namespace hortator::parallel
