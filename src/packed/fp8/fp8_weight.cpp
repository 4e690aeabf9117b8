#include "packed/fp8/fp8_weight.hpp"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>
#include <span>

#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "machine/device/recording.hpp"

namespace hortator::packed {
namespace {

constexpr std::int64_t tile = 16;  // rows and columns that GPUs multiply at a time

/// Carries a layer's state through LibTorch's context.
struct StateHolder : torch::CustomClassHolder {
  explicit StateHolder(std::shared_ptr<Fp8State> one) : state(std::move(one)) {}
  std::shared_ptr<Fp8State> state;
};

/// Rows up to a multiple of 16: zeros add nothing.
at::Tensor padded(const at::Tensor& rows) {
  const auto missing = (tile - rows.size(0) % tile) % tile;
  return missing == 0 ? rows : at::constant_pad_nd(rows, {0, 0, 0, missing});
}

at::Tensor without_padding(const at::Tensor& rows, std::int64_t count) {
  return rows.size(0) == count ? rows : rows.narrow(0, 0, count).clone();
}

ScaledTensor cast_weight(Fp8State& state, const at::Tensor& weight, bool is_transposed) {
  const interception::Hold present(std::span(&weight, 1), interception::Access::read);
  const auto rows = is_transposed ? weight.detach().t() : weight.detach();
  return scaled(rows, at::kFloat8_e4m3fn, state.options.margin, state.of(state.weights));
}

// The weight is cast again in backward: a sharded one must not stay. Delayed scaling then uses the scale of forward.
struct Fp8Product : torch::autograd::Function<Fp8Product> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::shared_ptr<Fp8State>& state, bool is_transposed) {
    const auto input = scaled(padded(x), at::kFloat8_e4m3fn, state->options.margin, state->of(state->inputs));
    const auto matrix = cast_weight(*state, weight, is_transposed);
    context->save_for_backward({input.values, input.scale, matrix.scale});
    context->saved_data["weight"] = weight;
    context->saved_data["is_transposed"] = is_transposed;
    context->saved_data["learns"] = weight.requires_grad();
    context->saved_data["state"] = c10::IValue::make_capsule(c10::make_intrusive<StateHolder>(state));
    return without_padding(product_with_transposed(input, matrix, x.scalar_type()), x.size(0));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto weight = context->saved_data["weight"].toTensor();
    const auto is_transposed = context->saved_data["is_transposed"].toBool();
    auto& state = *c10::static_intrusive_pointer_cast<StateHolder>(context->saved_data["state"].toCapsule())->state;
    const auto type = gradients[0].scalar_type();
    const auto gradient =
        scaled(padded(gradients[0]), state.gradient_type(), state.options.margin, state.of(state.gradients));
    at::Tensor of_x, of_weight;
    if (context->needs_input_grad(0)) {
      const interception::Hold present(std::span(&weight, 1), interception::Access::read);
      const auto factor = saved[2].reciprocal();
      const auto largest = 448.0;
      const auto by_column = (is_transposed ? weight.detach() : weight.detach().t()).to(at::kFloat) * factor;
      const ScaledTensor matrix{.values = by_column.clamp(-largest, largest).to(at::kFloat8_e4m3fn).contiguous(),
                                .scale = saved[2]};
      of_x = without_padding(product_with_transposed(gradient, matrix, type), gradients[0].size(0));
    }
    if (context->saved_data["learns"].toBool() && context->needs_input_grad(1)) {
      const ScaledTensor input{.values = saved[0], .scale = saved[1]};
      of_weight = product_with_transposed(transposed(gradient), transposed(input), type).to(weight.scalar_type());
      if (is_transposed) of_weight = of_weight.t();
    }
    return {of_x, of_weight, {}, {}};
  }
};

at::Tensor as_multiplied(const at::Tensor& x) {
  const auto device = x.device().type();
  return at::autocast::is_autocast_enabled(device) ? x.to(at::autocast::get_autocast_dtype(device)) : x;
}

}  // namespace

bool Fp8Weight::concerns(const interception::WeightCall& call) const {
  if (!interception::reads_as_layer(call, is_transposed_) || call.op.operator_name().name == "aten::mm") return false;
  const auto module = module_.lock();
  return !module || module->is_training() || state_->options.during_evaluation;
}

/// Histories of delayed scaling move on with each run.
void Fp8Weight::require_repeatable() const {
  if (state_->options.scaling != Fp8Scaling::delayed || !(is_recomputing() || machine::is_recording())) return;
  throw UsageError(
      {.what = text::concat("The layer ", text::quote(name_), " computes in fp8 with delayed scaling, and is ",
                            is_recomputing() ? "recomputed" : "recorded"),
       .why = "the next run would have other scales than the first",
       .hint = "use fp8_scaling dynamic, or leave recomputation and capture() out"});
}

bool Fp8Weight::run(const interception::WeightCall& call) {
  if (!concerns(call)) return false;
  require_repeatable();
  if (interception::carries_divided_key(call.weight)) {
    throw UsageError({.what = text::concat("The layer ", text::quote(name_),
                                           " computes in fp8, and its weight is divided among ranks"),
                      .why = "each rank would have other scales",
                      .hint = "use bf16 with parallel.tensor, or leave parallel.tensor out"});
  }
  const bool is_addmm = call.op.operator_name().name == "aten::addmm";
  if (is_addmm && !(call.argument(3).toScalar().equal(1) && call.argument(4).toScalar().equal(1))) return false;
  const auto x = as_multiplied(call.tensor(call.position - 1));
  if (x.dim() == 0 || !x.is_floating_point()) return false;
  auto sizes = x.sizes().vec();
  const auto rows = x.reshape({-1, x.size(-1)});
  if (rows.size(0) == 0) return false;
  auto result = Fp8Product::apply(rows, call.weight, state_, is_transposed_);
  sizes.back() = result.size(-1);
  result = result.view(sizes);
  const auto bias = is_addmm ? call.tensor(0) : call.is_linear() ? call.tensor(2) : at::Tensor();
  if (bias.defined()) result = result + bias.to(result.scalar_type());
  torch::jit::drop(call.stack, call.count());
  call.stack.emplace_back(std::move(result));
  return true;
}

}  // namespace hortator::packed
