#pragma once

#include <hortator/training/sliced_optimizer.hpp>
#include <unordered_map>
#include <vector>

#include "step/optimizer/sharded_optimizer.hpp"

namespace hortator::step {

/// What a SlicedOptimizer needs of the ranks that have the other slices.
class ShardedSlices final : public ParameterSlices {
 public:
  using Groups = std::vector<std::vector<ShardedOptimizer::ShardedParameter>>;
  /// `ranks` have slices of the same parameters. Both must outlive this, and groups stay as they are. References to
  /// slices are counted (FlatParameters::is_kept), so none is held here.
  ShardedSlices(const Groups& groups, comm::Communicator& ranks);

  Slice of(const at::Tensor& parameter) const override;
  void sum(at::Tensor& numbers) const override;
  void apply_to_whole(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& values, at::ScalarType result,
                      const WholeFunction& function) const override;

 private:
  /// A value that one rank computes on as a whole.
  struct OwnedValue {
    std::size_t number = 0;  ///< in the list of values
    const ShardedOptimizer::ShardedParameter* sharded = nullptr;
    int owner = 0;
  };

  const ShardedOptimizer::ShardedParameter* find(const at::Tensor& parameter) const;
  std::vector<OwnedValue> owned_values(const std::vector<at::Tensor>& parameters) const;
  std::vector<at::Tensor> collect(const std::vector<OwnedValue>& owned, const std::vector<at::Tensor>& values) const;
  void distribute(const std::vector<OwnedValue>& owned, const std::vector<at::Tensor>& results,
                  std::vector<at::Tensor>& values, at::ScalarType type) const;

  std::unordered_map<const void*, const ShardedOptimizer::ShardedParameter*> by_slice_;
  comm::Communicator& ranks_;
};

}  // namespace hortator::step
