#pragma once

#include <utility>
#include <vector>

#include "packed/packed_layers.hpp"
#include "paging/interception/weight_operators.hpp"

namespace hortator::packed {

/// A parameter whose memory is a packed matrix: computes the products with it, and looks up its rows.
class PackedWeight final : public paging::WeightOperator {
 public:
  explicit PackedWeight(PackableLayer layer) : layer_(std::move(layer)) { layer_.weight = at::Tensor(); }

  bool run(const paging::WeightCall& call) override;
  bool changes_products() const override { return true; }
  std::vector<std::int64_t> sizes_of_layer() const override;

  const PackableLayer& layer() const { return layer_; }  ///< without the weight, which it must not keep alive

 private:
  [[noreturn]] void refuse(const paging::WeightCall& call, const char* why) const;
  void require_bytes(const paging::WeightCall& call) const;
  at::Tensor computed(const paging::WeightCall& call) const;
  at::Tensor looked_up(const paging::WeightCall& call) const;

  PackableLayer layer_;
};

}  // namespace hortator::packed
