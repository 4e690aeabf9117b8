#pragma once

#include <string>
#include <utility>
#include <vector>

#include "packed/layout.hpp"
#include "paging/interception/weight_operators.hpp"

namespace hortator::packed {

/// A parameter whose memory is a packed matrix: computes the products with it.
class PackedWeight final : public paging::WeightOperator {
 public:
  /// `is_transposed`: the layer has the matrix as [inputs, outputs].
  PackedWeight(std::string name, PackedLayout layout, bool is_transposed)
      : name_(std::move(name)), layout_(layout), is_transposed_(is_transposed) {}

  bool run(const paging::WeightCall& call) override;
  bool changes_products() const override { return true; }
  std::vector<std::int64_t> sizes_of_layer() const override;

 private:
  [[noreturn]] void refuse(const paging::WeightCall& call, const char* why) const;

  std::string name_;
  PackedLayout layout_;
  bool is_transposed_;
};

}  // namespace hortator::packed
