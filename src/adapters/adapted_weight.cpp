#include "adapters/adapted_weight.hpp"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"

namespace hortator::adapters {
namespace {

/// The layer whose own products an adapter computes now.
thread_local const AdaptedWeight* computing = nullptr;

class ComputingScope {
 public:
  explicit ComputingScope(const AdaptedWeight& one) : before_(std::exchange(computing, &one)) {}
  ~ComputingScope() { computing = before_; }
  ComputingScope(const ComputingScope&) = delete;
  ComputingScope& operator=(const ComputingScope&) = delete;

 private:
  const AdaptedWeight* before_;
};

bool is_autocast(const at::Tensor& tensor) { return at::autocast::is_autocast_enabled(tensor.device().type()); }

at::Tensor in_type_of(const at::Tensor& x, const at::Tensor& factor) {
  const bool stays = !x.is_floating_point() || x.scalar_type() == factor.scalar_type() || is_autocast(x);
  return stays ? x : x.to(factor.scalar_type());
}

std::optional<at::Tensor> given(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

std::vector<at::Tensor> Adapter::parameters() const {
  std::vector<at::Tensor> all = {a, b};
  for (const auto& one : {bias, magnitude})
    if (one.defined()) all.push_back(one);
  return all;
}

/// What one call of the layer read.
struct AdaptedWeight::Inputs {
  at::Tensor x;                        ///< activations, or the indices of an embedding
  at::Tensor bias;                     ///< that the operator adds; undefined without one
  at::Scalar factor = 1;               ///< of the product
  std::vector<c10::IValue> arguments;  ///< of embeddings and convolutions: all
  std::size_t position = 0;            ///< of the weight among them
  const c10::OperatorHandle* op;
};

void AdaptedWeight::remove(const std::string& name) {
  std::erase_if(adapters_, [&](const Adapter& one) { return one.name == name; });
  std::erase(active_, name);
  update_attachment();
}

const Adapter* AdaptedWeight::find(const std::string& name) const {
  const auto found = std::ranges::find_if(adapters_, [&](const Adapter& one) { return one.name == name; });
  return found == adapters_.end() ? nullptr : &*found;
}

Adapter& AdaptedWeight::named(const std::string& name) { return const_cast<Adapter&>(*find(name)); }

void AdaptedWeight::set_active(const std::vector<std::string>& names) {
  active_.clear();
  for (const auto& name : names)
    if (find(name) != nullptr) active_.push_back(name);
  update_attachment();
}

void AdaptedWeight::enable(bool on) {
  is_enabled_ = on;
  update_attachment();
}

// Without an active adapter the layer's operators are not intercepted, and have their full speed.
void AdaptedWeight::update_attachment() {
  const bool computes = std::ranges::any_of(active_, [this](const auto& name) { return !is_merged(name); });
  if (is_enabled_ && computes) {
    interception::attach_to_weight(weight(), place(), shared_from_this());
  } else {
    detach();
  }
}

void AdaptedWeight::detach() noexcept { interception::detach_from_weight(weight(), place(), *this); }

interception::WeightLayer AdaptedWeight::place() const {
  using Place = interception::WeightLayer;
  return layer_.kind == LayerKind::embedding ? Place::embedding_adapters : Place::adapters;
}

bool AdaptedWeight::is_merged(const std::string& name) const {
  return std::ranges::find(merged_, name) != merged_.end();
}

/// Whether the operator computes what the layer's forward does, and not x W of a layer that computes x W^T.
bool AdaptedWeight::concerns(const interception::WeightCall& call) const {
  if (computing == this) return false;
  if (layer_.kind == LayerKind::embedding) return call.use == interception::WeightUse::embedding;
  if (layer_.kind == LayerKind::convolution) return call.use == interception::WeightUse::convolution;
  return interception::reads_as_layer(call, layer_.kind == LayerKind::transposed);
}

bool AdaptedWeight::run(const interception::WeightCall& call) {
  if (!concerns(call)) return false;
  Inputs inputs{
      .x = call.tensor(call.position == 0 ? 1 : call.position - 1), .position = call.position, .op = &call.op};
  const auto& name = call.op.operator_name().name;
  if (name == "aten::addmm") {
    inputs.bias = call.tensor(0);
    if (const auto beta = call.argument(3).toScalar(); !beta.equal(1)) inputs.bias = inputs.bias * beta;
    inputs.factor = call.argument(4).toScalar();
  } else if (call.is_linear()) {
    inputs.bias = call.tensor(2);
  }
  if (call.use != interception::WeightUse::product)
    for (std::size_t i = 0; i < call.count(); ++i) inputs.arguments.push_back(call.argument(i));
  call.plain();
  auto result = call.stack.back().toTensor();
  const auto type = result.scalar_type();
  for (const auto& adapter : active_)
    if (!is_merged(adapter)) result = added(*find(adapter), inputs, result);
  call.stack.back() = result.to(type);
  return true;
}

at::Tensor AdaptedWeight::added(const Adapter& adapter, const Inputs& inputs, const at::Tensor& result) const {
  auto x = in_type_of(inputs.x, adapter.a);
  const auto dropout = adapter.options->dropout;
  if (dropout > 0 && is_training() && layer_.kind != LayerKind::embedding) x = at::dropout(x, dropout, true);
  if (adapter.magnitude.defined()) return added_by_dora(adapter, inputs, x, result);
  const auto more = low_rank(adapter, inputs, x);
  return at::add(result, more, adapter.scaling * inputs.factor.toDouble());
}

at::Tensor AdaptedWeight::low_rank(const Adapter& adapter, const Inputs& inputs, const at::Tensor& x) const {
  if (layer_.kind == LayerKind::linear || layer_.kind == LayerKind::transposed)
    return at::linear(at::linear(x, adapter.a), adapter.b, given(adapter.bias));
  // the operator itself, with lora_A in the place of the weight
  torch::jit::Stack stack = inputs.arguments;
  stack[inputs.position] = layer_.kind == LayerKind::embedding ? adapter.a.t() : adapter.a;
  if (layer_.kind == LayerKind::embedding) {
    inputs.op->callBoxed(&stack);
    return at::linear(stack.back().toTensor(), adapter.b);
  }
  stack[inputs.position - 1] = x;
  stack[inputs.position + 1] = c10::IValue();  // the bias
  const auto& arguments = inputs.op->schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == "groups") stack[i] = std::int64_t{1};
  inputs.op->callBoxed(&stack);
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(adapter.b.dim() - 2), 1), none(ones.size(), 0);
  return at::convolution(stack.back().toTensor(), adapter.b, given(adapter.bias), ones, none, ones,
                         /*transposed=*/false, none, layer_.groups);
}

// Rows of the weight with its adapter get the lengths `magnitude`; the present lengths count as constants.
at::Tensor AdaptedWeight::added_by_dora(const Adapter& adapter, const Inputs& inputs, const at::Tensor& x,
                                        const at::Tensor& result) const {
  if (interception::carries_divided_key(weight())) {
    throw UsageError(
        {.what = text::concat("The adapter ", text::quote(adapter.name), " has use_dora, and the weight of ",
                              text::quote(layer_.name), " is divided by parallel.tensor"),
         .why = "DoRA needs the lengths of whole rows, which no rank has",
         .hint = "leave out one of the two; rsLoRA and LoRA work with parallel.tensor"});
  }
  const ComputingScope own(*this);
  const auto factors = (adapter.magnitude / row_lengths(layer_, adapter)).view({1, -1});
  auto base = inputs.bias.defined() ? result - inputs.bias : result;
  if (adapter.options->dropout > 0 && is_training()) {
    const auto rows = layer_.kind == LayerKind::transposed ? weight().t() : weight();
    base = at::linear(x, rows.to(x.scalar_type())) * inputs.factor;
  }
  const auto more = low_rank(adapter, inputs, x) * (adapter.scaling * inputs.factor.toDouble());
  return result + (factors - 1) * base + factors * more;
}

}  // namespace hortator::adapters
