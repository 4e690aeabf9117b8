#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/derivatives.hpp>

namespace hortator::simulation {

/// A function near one input: its output there, and how the output changes.
class Linearization {
 public:
  enum class Order { once, twice };
  /// Calls the function, recorded so that it can be differentiated once, or twice as tangent() needs. Throws UsageError
  /// for an input of whole numbers and an output that has no derivatives.
  Linearization(const TensorFunction& function, const at::Tensor& input, Order order);

  const at::Tensor& input() const { return input_; }
  const at::Tensor& output() const { return output_; }
  /// The gradient of sum(cotangent * output). Throws UsageError for another shape than the output's.
  at::Tensor adjoint(const at::Tensor& cotangent) const;
  /// The Jacobian times `direction`. Throws UsageError for another shape than the input's. Needs Order::twice.
  at::Tensor tangent(const at::Tensor& direction) const;
  /// [output..., input...]. Throws UsageError for complex numbers.
  at::Tensor jacobian() const;
  /// [samples, output..., input...]. Throws UsageError for complex numbers, and if samples depend on each other.
  at::Tensor sample_jacobian() const;

 private:
  at::Tensor gradient_of(const at::Tensor& cotangent) const;
  void require_real() const;
  void require_independent_samples(const at::Tensor& jacobian) const;

  at::Tensor input_;
  at::Tensor output_;
};

}  // namespace hortator::simulation
