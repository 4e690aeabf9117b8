#pragma once

#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/training/named_optimizer.hpp>
#include <memory>
#include <vector>

namespace hortator {

/// The slices that this rank has of an optimizer's parameters under ZeRO, for optimizers that look at more than single
/// elements. Without ZeRO each slice is the whole parameter, and nothing is exchanged.
class HORTATOR_API ParameterSlices {
 public:
  struct Slice {
    std::vector<std::int64_t> sizes;  ///< of the whole parameter
    std::int64_t begin = 0;           ///< the number, in the whole parameter, of this rank's first element
    /// False for a whole parameter that another rank has as well, and adds to sum().
    bool counts = true;

    std::int64_t whole_elements() const;
  };
  using WholeFunction = std::function<at::Tensor(const at::Tensor& whole)>;

  virtual ~ParameterSlices();
  virtual Slice of(const at::Tensor& parameter) const = 0;
  /// Sums numbers over the ranks, in place. @collective
  virtual void sum(at::Tensor& numbers) const = 0;
  /// `values` has a tensor for each of the parameters, of the sizes of its slice. Replaces each by the same slice of
  /// `function` of the whole values, whose result has the sizes of its argument and the type `result`. One rank, or
  /// each that has the whole parameter, calls it. @collective
  virtual void apply_to_whole(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& values,
                              at::ScalarType result, const WholeFunction& function) const = 0;
};

/// Base of optimizers that look at more than single elements, and train at every ZeRO stage as without it: a derived
/// class writes step_parameters(), which steps slices and exchanges what else it needs by slices().
class HORTATOR_API SlicedOptimizer : public NamedOptimizer {
 public:
  using NamedOptimizer::NamedOptimizer;
  /// Called under ZeRO before each step.
  void use(std::weak_ptr<const ParameterSlices> slices) { slices_ = std::move(slices); }

 protected:
  struct SteppedParameter {
    at::Tensor parameter;
    at::Tensor gradient;
    MomentState& state;
    ParameterSlices::Slice slice;
  };
  /// Steps the parameters of a group that have gradients: the same ones on all ranks. Called without gradient mode.
  virtual void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                               const ParameterSlices& slices) = 0;

 private:
  void step_group(torch::optim::OptimizerParamGroup& group) final;
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state, const NamedOptions& options) final;

  std::weak_ptr<const ParameterSlices> slices_;
};

}  // namespace hortator
