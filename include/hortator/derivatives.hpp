#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <hortator/export.hpp>

namespace hortator {

/// A function of one tensor that LibTorch can differentiate: a model, with the choice of an input and an output.
///
///     const hortator::TensorFunction field = [&](const at::Tensor& x) { return net->forward(x)[0]; };
///
/// The functions below call it once and throw UsageError if its output does not come from differentiable operators, and
/// for tensors whose types or shapes do not fit. Derivatives of an output that does not depend on the tensor are 0.
/// They are local: no rank waits for another. Their results have no graph, except those of energy_and_forces().
using TensorFunction = std::function<at::Tensor(const at::Tensor& input)>;

/// The gradient of sum(cotangent * output) with respect to the input, whose shape it has. `cotangent` has the output's.
HORTATOR_API at::Tensor adjoint(const TensorFunction& function, const at::Tensor& input, const at::Tensor& cotangent);

/// The change of the output, whose shape it has, for a small change of the input along `direction`, which has the
/// input's shape: the Jacobian times the direction, without the Jacobian. The function is differentiated twice, and
/// computes attention by operators for which that is possible.
HORTATOR_API at::Tensor tangent(const TensorFunction& function, const at::Tensor& input, const at::Tensor& direction);

/// All derivatives: of each element of the output with respect to each element of the input. It has the output's
/// dimensions, then the input's, and takes a backward pass for each element of the output.
HORTATOR_API at::Tensor jacobian(const TensorFunction& function, const at::Tensor& input);

/// The derivatives of each sample: [samples, output..., input...] for a function that maps [samples, input...] to
/// [samples, output...]. It takes a backward pass for each element of a sample's output. Throws UsageError if the
/// samples depend on each other, which one more backward pass finds out.
HORTATOR_API at::Tensor sample_jacobian(const TensorFunction& function, const at::Tensor& input);

/// What energy_and_forces() returns.
struct EnergyAndForces {
  at::Tensor energy;  ///< what the function returned
  at::Tensor forces;  ///< the negative gradient of the sum of the energies, of the shape of the positions
};

/// Energies and the forces that follow from them. Where gradients are recorded, both are part of the graph, so that a
/// loss of forces trains the model: attention is then computed by operators that can be differentiated twice. Otherwise
/// neither has a graph. Parameters get gradients only by the loss's backward pass.
///
///     const auto energy_of = [&](const at::Tensor& x) { return model(x); };
///     const auto [energy, forces] = hortator::energy_and_forces(energy_of, positions);
///     accelerator.backward(torch::mse_loss(forces, measured));
HORTATOR_API EnergyAndForces energy_and_forces(const TensorFunction& energy, const at::Tensor& positions);

}  // namespace hortator
