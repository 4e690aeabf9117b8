#include "parallel/tensor/divided_tensor.hpp"

#include <ATen/ops/alias.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/tensor/copy_views.hpp"
#include "parallel/tensor/gradient_bridge.hpp"

namespace hortator::parallel {
namespace {

using interception::divided_key;

/// What a divided parameter knows. Views that detach() makes inherit it.
struct DivisionOfParameter final : c10::BackendMeta {
  DivisionOfParameter(const Division& division, SharedRanks ranks) : division(division), ranks(std::move(ranks)) {}
  Division division;
  SharedRanks ranks;
};

DivisionOfParameter* division_of_parameter(const at::Tensor& tensor) {
  return dynamic_cast<DivisionOfParameter*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}

/// An activation: whole sizes outside, this rank's part inside.
class DividedImpl final : public c10::TensorImpl {
 public:
  DividedImpl(at::Tensor part, const Division& division, SharedRanks ranks)
      : TensorImpl(c10::DispatchKeySet(divided_key) | c10::DispatchKeySet(part.options().computeDispatchKey()),
                   part.dtype(), part.device()),
        part_(std::move(part)),
        division_(division),
        ranks_(std::move(ranks)) {
    set_storage_access_should_throw();
    set_whole_sizes();
  }

  const at::Tensor& part() const { return part_; }
  void set_part(const at::Tensor& part) { part_ = part; }
  const Division& division() const { return division_; }
  const SharedRanks& ranks() const { return ranks_; }
  SharedGather& gathered() { return gathered_; }
  /// The node through which gradients of the whole tensor reach the part; null without gradients.
  const torch::autograd::Node* bridge = nullptr;

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& /*version*/,
                                                         bool /*allow_change*/) const override {
    return detached();
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& /*version*/,
                                                         bool /*allow_change*/) const override {
    return detached();
  }
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& /*from*/) override {
    throw UsageError({.what = "set_data was called on an activation that is divided among ranks",
                      .why = "it has no memory of its own",
                      .hint = "assign the variable instead"});
  }

 private:
  const char* tensorimpl_type_name() const override { return "a tensor that is divided among ranks"; }

  c10::intrusive_ptr<TensorImpl> detached() const {
    return c10::make_intrusive<DividedImpl>(part_.detach(), division_, ranks_);
  }

  // Strides of a whole tensor that lies in memory as the part does.
  void set_whole_sizes() {
    c10::SmallVector<std::int64_t, 6> strides(part_.strides());
    const auto whole = whole_sizes(part_.sizes(), division_, ranks_->size());
    const auto at = static_cast<std::size_t>(division_.dim);
    const auto divided = strides[at];
    for (std::size_t dim = 0; dim < strides.size(); ++dim) {
      if (dim == at || strides[dim] <= divided) continue;
      strides[dim] =
          division_.padding > 0 ? strides[dim] / part_.size(division_.dim) * whole[at] : strides[dim] * ranks_->size();
    }
    sizes_and_strides_.set_sizes(whole);
    sizes_and_strides_.set_strides(strides);
    refresh_numel();
    refresh_contiguous();
  }

  at::Tensor part_;
  Division division_;
  SharedRanks ranks_;
  SharedGather gathered_;
};

DividedImpl* divided_impl(const at::Tensor& tensor) { return dynamic_cast<DividedImpl*>(tensor.unsafeGetTensorImpl()); }

void build_bridge(const at::Tensor& tensor, DividedImpl& impl) {
  impl.bridge = nullptr;
  if (!c10::GradMode::is_enabled() || !impl.part().requires_grad()) return;
  impl.bridge = bridge_to_part(tensor, impl.part());
}

/// The part as a function of a whole tensor that has a history of its own: one that the user's function made, or whose
/// gradient the user watches with a hook.
struct EnterPart : torch::autograd::Function<EnterPart> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& tensor) {
    context->saved_data["of"] = tensor.detach();
    return divided_impl(tensor)->part().detach();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto of = context->saved_data["of"].toTensor();
    const auto& impl = *divided_impl(of);
    return {divided_tensor(gradients[0], impl.division(), impl.ranks())};
  }
};

bool has_own_history(const at::Tensor& tensor, const DividedImpl& impl) {
  if (impl.autograd_meta() == nullptr || !c10::GradMode::is_enabled() || !tensor.requires_grad()) return false;
  const auto* node = torch::autograd::impl::grad_fn_unsafe(tensor);
  return node == nullptr || node != impl.bridge || is_watched(*node);
}

/// A parameter's part without the key, so that what autograd saves of it is not intercepted.
at::Tensor plain_part(const at::Tensor& parameter) {
  const PartsOnly here;
  auto plain = at::alias(parameter);
  interception::remove_divided_key(plain);
  return plain;
}

}  // namespace

std::string Operand::text() const {
  return text::concat("[", text::join(whole_sizes()), "] along dimension ", division ? division->dim : -1);
}

at::Tensor Operand::whole_for_ranks(const SharedRanks& of) const {
  if (!division) return spread(tensor, of);
  if (!shared.defined()) return gather(tensor, *division, ranks);
  return divided_impl(shared)->gathered().whole(tensor, *division, ranks);
}

at::Tensor Operand::times_shared(const at::Tensor& columns) const {
  return product_of_gathered(divided_impl(shared)->gathered(), tensor, *division, ranks, columns);
}

bool is_divided(const at::Tensor& tensor) {
  return tensor.defined() && interception::carries_divided_key(tensor) && !is_copy_view(tensor);
}

bool is_divided_parameter(const at::Tensor& tensor) { return is_divided(tensor) && division_of_parameter(tensor); }

Operand operand_of(const at::Tensor& tensor) {
  if (!is_divided(tensor)) return {.tensor = tensor};
  if (auto* impl = divided_impl(tensor)) {
    if (has_own_history(tensor, *impl))
      return {.tensor = EnterPart::apply(tensor), .division = impl->division(), .ranks = impl->ranks()};
    return {.tensor = impl->part(), .division = impl->division(), .ranks = impl->ranks(), .shared = tensor};
  }
  const auto* known = division_of_parameter(tensor);
  auto plain = plain_part(tensor);
  // A view that PartsOnly code made of a divided parameter is an ordinary tensor.
  if (known == nullptr) return {.tensor = std::move(plain)};
  return {.tensor = std::move(plain), .division = known->division, .ranks = known->ranks};
}

at::Tensor whole_values(const at::Tensor& tensor) {
  if (!is_divided(tensor)) return tensor;
  const at::NoGradGuard no_grad;
  return operand_of(tensor).whole();
}

at::Tensor divided_tensor(at::Tensor part, const Division& division, const SharedRanks& ranks) {
  auto impl = c10::make_intrusive<DividedImpl>(std::move(part), division, ranks);
  auto& divided = *impl;
  at::Tensor tensor(std::move(impl));
  build_bridge(tensor, divided);
  return tensor;
}

void follow_part(const at::Tensor& tensor, const at::Tensor& part) {
  auto* impl = divided_impl(tensor);
  if (impl == nullptr) return;  // a parameter: autograd knows it
  impl->set_part(part);
  build_bridge(tensor, *impl);
}

void mark_divided(const at::Tensor& parameter, const Division& division, const SharedRanks& ranks) {
  if (ranks->size() == 1) return;
  interception::add_divided_key(parameter);
  parameter.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<DivisionOfParameter>(division, ranks));
}

void unmark_divided(const at::Tensor& parameter) {
  interception::remove_divided_key(parameter);
  parameter.unsafeGetTensorImpl()->set_backend_meta(nullptr);
}

void replace_data(const at::Tensor& parameter, const at::Tensor& data) {
  const auto* known = is_divided(parameter) ? division_of_parameter(parameter) : nullptr;
  if (known == nullptr) return parameter.set_data(data);
  const auto division = known->division;
  const auto ranks = known->ranks;
  unmark_divided(parameter);
  parameter.set_data(data);
  mark_divided(parameter, division, ranks);
}

}  // namespace hortator::parallel
