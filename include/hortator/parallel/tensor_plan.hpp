#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <hortator/export.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace torch::nn {
class Module;
}

/// How the weights of a model are divided among the ranks of a tensor group (AcceleratorOptions::parallel.tensor).
namespace hortator {

/// What is divided of a layer.
enum class TensorDivision {
  columns,     ///< the outputs of a layer: its result is divided. Biases as well
  rows,        ///< the inputs of a layer, which are divided: results are summed over the ranks
  vocabulary,  ///< the tokens of an embedding, or of the layer that scores them; any number of tokens
  replicated,  ///< nothing: each rank has the whole layer
  /// The sequence that the layer sees, not its weights: norms and dropout work on this rank's tokens. One such rule
  /// makes all `rows` and `vocabulary` layers of the plan give results that are divided along the sequence where they
  /// are [batch, tokens, width], so that between layers activations take 1/tensor of the memory. In training, the
  /// number of tokens must be a multiple of the tensor ranks.
  sequence,
};

/// Layers of one kind.
struct HORTATOR_API TensorRule {
  /// A layer's name, or a parameter's, or the end of one from a dot on: "layers.*.mlp.up_proj". A star stands for any
  /// characters but dots.
  std::string pattern;
  TensorDivision division = TensorDivision::replicated;
  /// The number of equal blocks of the divided dimension. Each block is divided: 3 for fused queries, keys and values.
  int blocks = 1;
  /// The weight is stored as [inputs, outputs], as GPT-2's Conv1D does.
  bool transposed = false;
  /// Elements of the divided dimension that stay together: the width of a head, so that whole heads are divided.
  int unit = 1;
  /// Replicates a layer that cannot be divided equally, where other rules throw: fewer key heads than ranks.
  bool or_replicate = false;

  /// A rule in the words of a tp_plan of Hugging Face: "colwise", "rowwise", ... Throws UsageError for others.
  static TensorRule from_hugging_face(std::string pattern, std::string_view style);
};

/// A plan: the first rule that fits a parameter counts, and parameters that none fits are replicated.
using TensorPlan = std::vector<TensorRule>;

/// A plan for a module that brings none, for this number of tensor ranks: the layers that can be divided so that
/// nothing is gathered. `forward` runs the module as training does, on a small batch, and returns its result; it is
/// called some times for each kind of layer, without gradients. Names that differ only in numbers are one kind, unless
/// no kind can be divided: then each layer is tried. Throws UsageError if no layers can be divided. Call it on all
/// ranks, before prepare(), and look at describe() of the plan. Local.
///
///     const auto plan = hortator::derive_tensor_plan(*net, 2, [&] { return net->forward(ids); });
HORTATOR_API TensorPlan derive_tensor_plan(torch::nn::Module& module, int ranks,
                                           const std::function<at::Tensor()>& forward);

/// The rules, a line each: "blocks.*.attention.qkv: columns in 3 blocks".
HORTATOR_API std::string describe(const TensorPlan& plan);

/// A module that brings its plan, which counts where AcceleratorOptions has none. Derive your module from it as well.
class HORTATOR_API HasTensorPlan {
 public:
  virtual ~HasTensorPlan() = default;
  virtual TensorPlan tensor_plan() const = 0;
};

}  // namespace hortator
