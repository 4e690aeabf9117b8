#pragma once

#include <utility>
#include <vector>

#include "interception/weight_operators.hpp"
#include "packed/packed_layers.hpp"

namespace hortator::packed {

/// A parameter whose memory is a packed matrix: computes the products with it, and looks up its rows.
class PackedWeight final : public interception::WeightOperator {
 public:
  explicit PackedWeight(PackableLayer layer) : layer_(std::move(layer)) { layer_.weight = at::Tensor(); }

  bool run(const interception::WeightCall& call) override;
  bool changes_products() const override { return true; }
  at::Tensor gradient_of_inputs(const at::Tensor& weight, const at::Tensor& gradient) const override;
  std::vector<std::int64_t> sizes_of_layer() const override;

  const PackableLayer& layer() const { return layer_; }  ///< without the weight, which it must not keep alive

 private:
  [[noreturn]] void refuse(const interception::WeightCall& call, const char* why) const;
  void require_bytes(const interception::WeightCall& call) const;
  at::Tensor computed(const interception::WeightCall& call) const;
  at::Tensor looked_up(const interception::WeightCall& call) const;

  PackableLayer layer_;
};

}  // namespace hortator::packed
