#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <hortator/lora.hpp>
#include <memory>
#include <string>
#include <vector>

#include "adapters/layers.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::adapters {

/// One adapter of one layer.
struct Adapter {
  std::string name = {};
  at::Tensor a = {};          ///< [rank, inputs]; of a convolution with its kernel
  at::Tensor b = {};          ///< [outputs, rank]
  at::Tensor bias = {};       ///< of lora_B; undefined without lora_bias
  at::Tensor magnitude = {};  ///< of DoRA [outputs]; otherwise undefined
  double scaling = 1;
  std::shared_ptr<const LoraOptions> options = {};  ///< the same for all layers of the adapter
  at::Tensor merged_factor = {};                    ///< of DoRA, while it is merged: what rows were multiplied by

  std::vector<at::Tensor> parameters() const;
};

/// The adapters of one layer: adds what the active ones compute to what the layer computes with its weight.
class AdaptedWeight final : public interception::WeightOperator, public std::enable_shared_from_this<AdaptedWeight> {
 public:
  explicit AdaptedWeight(Layer layer) : layer_(std::move(layer)) { layer_.module.reset(); }

  const Layer& layer() const { return layer_; }
  const at::Tensor& weight() const { return layer_.weight; }
  /// The module whose train() and eval() count.
  void follow(const torch::nn::Module& module) { module_ = &module; }

  void add(Adapter adapter) { adapters_.push_back(std::move(adapter)); }
  void remove(const std::string& name);
  const std::vector<Adapter>& adapters() const { return adapters_; }
  const Adapter* find(const std::string& name) const;

  /// Makes those of the names that this layer has the active ones.
  void set_active(const std::vector<std::string>& names);
  const std::vector<std::string>& active() const { return active_; }
  void enable(bool on);
  bool is_enabled() const { return is_enabled_; }

  /// Adds adapters to the weight, which must be an ordinary tensor; unmerge() subtracts all of them again.
  void merge(const std::vector<std::string>& names);
  void unmerge();
  const std::vector<std::string>& merged() const { return merged_; }
  /// Ends what the active adapters compute.
  void detach() noexcept;

  bool run(const interception::WeightCall& call) override;
  bool changes_products() const override { return layer_.kind != LayerKind::embedding; }

 private:
  struct Inputs;
  bool concerns(const interception::WeightCall& call) const;
  at::Tensor added(const Adapter& adapter, const Inputs& inputs, const at::Tensor& result) const;
  at::Tensor added_by_dora(const Adapter& adapter, const Inputs& inputs, const at::Tensor& x,
                           const at::Tensor& result) const;
  at::Tensor low_rank(const Adapter& adapter, const Inputs& inputs, const at::Tensor& x) const;
  Adapter& named(const std::string& name);
  bool is_training() const { return module_ != nullptr && module_->is_training(); }
  void update_attachment();
  interception::WeightLayer place() const;
  bool is_merged(const std::string& name) const;

  Layer layer_;
  const torch::nn::Module* module_ = nullptr;
  std::vector<Adapter> adapters_;
  std::vector<std::string> active_, merged_;
  bool is_enabled_ = true;
};

/// What an adapter adds to the weight, in the weight's own layout.
at::Tensor delta_of(const Layer& layer, const Adapter& adapter);
/// The lengths of the rows of a linear layer's weight with its adapter, for DoRA.
at::Tensor row_lengths(const Layer& layer, const Adapter& adapter);

}  // namespace hortator::adapters
