#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

/// Computes products with a weight, and look-ups in it, in another way than LibTorch does: adapters, packed weights.
namespace hortator::interception {

enum class WeightUse { product, embedding, convolution };

/// An operator that reads a weight as a layer's forward does.
struct WeightCall {
  const c10::OperatorHandle& op;
  torch::jit::Stack& stack;
  WeightUse use;
  std::size_t position;                ///< of the weight among the arguments
  at::Tensor seen;                     ///< the weight, a view of it, or this rank's part of either
  at::Tensor weight;                   ///< what the operators were attached to
  const std::function<void()>& plain;  ///< runs the operator as it would run otherwise, on the stack

  std::size_t count() const { return op.schema().arguments().size(); }
  const c10::IValue& argument(std::size_t i) const { return torch::jit::peek(stack, i, count()); }
  /// A tensor argument; undefined if it is absent.
  at::Tensor tensor(std::size_t i) const {
    const auto& value = argument(i);
    return value.isTensor() ? value.toTensor() : at::Tensor();
  }
  /// Whether the operator is linear(): its weight is the transposed right factor.
  bool is_linear() const;
};

/// Whether a product reads the weight as its layer's forward does, and not x W of a layer that computes x W^T.
/// `is_transposed`: the layer computes x W.
bool reads_as_layer(const WeightCall& call, bool is_transposed);

class WeightOperator {
 public:
  virtual ~WeightOperator() = default;
  /// Replaces the arguments on the stack by the result. False, without any change, if the call does not concern it.
  virtual bool run(const WeightCall& call) = 0;
  /// Whether products with the weight are changed: code that multiplies by the weight's memory has to use linear().
  virtual bool changes_products() const = 0;
  /// The gradient of a product's inputs [rows, inputs], from that of its results. Packed weights have it.
  virtual at::Tensor gradient_of_inputs(const at::Tensor& /*weight*/, const at::Tensor& /*results*/) const {
    return {};
  }
  /// The sizes of the layer's weight, if those of the parameter are others; otherwise empty.
  virtual std::vector<std::int64_t> sizes_of_layer() const { return {}; }
};

/// The order in which the operators of one weight run: each one's plain() is the next. A tied weight may have adapters
/// of the layer that multiplies by it, and of the embedding that looks up its rows.
enum class WeightLayer { adapters, embedding_adapters, packed, fp8 };

/// From now on operators on `weight`, and on views of it, are given to `computes`, wherever its memory is
/// (refresh_weights). Replaces what is attached in this layer. Ends with the weight, which is not kept alive.
void attach_to_weight(const at::Tensor& weight, WeightLayer layer, std::shared_ptr<WeightOperator> computes);
/// Nothing happens unless `computes` is what is attached.
void detach_from_weight(const at::Tensor& weight, WeightLayer layer, const WeightOperator& computes) noexcept;

/// Removes the key of a tensor that is no longer claimed, unless something is attached to it.
void remove_key_of_claim(const at::Tensor& tensor);

/// What is attached to a weight in this layer; null if nothing is.
std::shared_ptr<WeightOperator> operator_of(const at::Tensor& weight, WeightLayer layer);

/// Whether the weight's memory holds a packed form of it.
bool is_packed(const at::Tensor& weight);
/// The sizes of a weight, also of a packed one.
std::vector<std::int64_t> sizes_of_weight(const at::Tensor& weight);

/// Whether products with the tensor, a weight or a view of it, are not those with its memory.
bool changes_products(const at::Tensor& weight);

/// Finds weights whose memory was replaced since (set_data), as prepare() does. Call it before forward.
void refresh_weights();

/// Where the operator reads a weight; nothing for other operators, and in backward. Fast.
std::optional<std::size_t> weight_position(const c10::OperatorHandle& op);

/// Gives the call to what is attached to the storage of `seen`, if anything is. False if the operator is to run as it
/// is.
bool run_weight_operator(const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t position,
                         const at::Tensor& seen, const std::function<void()>& plain);

}  // namespace hortator::interception
