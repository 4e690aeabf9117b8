#include "parallel/tensor/shared_gather.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "parallel/tensor/tensor_state.hpp"

namespace hortator::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// How the input is gathered again. A custom function's plain argument travels in a struct.
struct HowGathered final : torch::CustomClassHolder {
  std::shared_ptr<RepeatedGather> repeated;
  Division division;
  SharedRanks ranks;
};
struct Argument {
  c10::intrusive_ptr<HowGathered> how;
};

struct GatheredProduct : torch::autograd::Function<GatheredProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& whole, const at::Tensor& part,
                            const at::Tensor& columns, const Argument& argument) {
    context->save_for_backward({part, columns});
    context->saved_data["how"] = c10::IValue::make_capsule(argument.how);
    return at::matmul(whole, columns);
  }

  // Under autocast the product has a narrower type than its factors.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto held = context->saved_data["how"].toCapsule();
    const auto& how = static_cast<const HowGathered&>(*held);
    const auto& gradient = gradients[0];
    const auto type = gradient.scalar_type();
    const auto rows = [](const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); };
    at::Tensor of_whole, of_columns;
    if (context->needs_input_grad(0)) of_whole = gradient.matmul(saved[1].to(type).t());
    if (context->needs_input_grad(2)) {
      const auto whole = how.repeated->take(saved[0], how.division, how.ranks).to(type);
      of_columns = rows(whole).t().mm(rows(gradient));
    }
    return {of_whole, at::Tensor(), of_columns, at::Tensor()};
  }
};

}  // namespace

at::Tensor RepeatedGather::take(const at::Tensor& part, const Division& division, const SharedRanks& ranks) {
  if (!whole_.defined()) whole_ = gather(part, division, ranks);
  auto taken = whole_;
  if (++taken_ < users_) return taken;
  taken_ = 0;
  whole_.reset();
  return taken;
}

const at::Tensor& SharedGather::whole(const at::Tensor& part, const Division& division, const SharedRanks& ranks) {
  const bool is_known =
      whole_.defined() && version_ == tensor_version(part) && whole_.requires_grad() == has_gradient(part);
  if (is_known) return whole_;
  version_ = tensor_version(part);
  whole_ = gather(part, division, ranks);
  repeated_ = std::make_shared<RepeatedGather>();
  return whole_;
}

at::Tensor product_of_gathered(SharedGather& gather, const at::Tensor& part, const Division& division,
                               const SharedRanks& ranks, const at::Tensor& columns) {
  const auto& whole = gather.whole(part, division, ranks);
  if (!has_gradient(part) && !has_gradient(columns)) return at::matmul(whole, columns);
  if (has_gradient(columns)) gather.repeated()->add_user();
  auto how = c10::make_intrusive<HowGathered>();
  how->repeated = gather.repeated();
  how->division = division;
  how->ranks = ranks;
  return GatheredProduct::apply(whole, part, columns, Argument{std::move(how)});
}

}  // namespace hortator::parallel
