#include <hortator/derivatives.hpp>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "simulation/derivatives/linearization.hpp"
#include "simulation/derivatives/plain_attention.hpp"

namespace hortator {
namespace {

using simulation::Linearization;

[[noreturn]] void refuse_energy(const char* why) {
  throw UsageError({.what = "The forces of an energy cannot be computed",
                    .why = why,
                    .hint = "compute the energy from the positions by operators that LibTorch can differentiate"});
}

at::Tensor recorded_positions(const at::Tensor& positions, bool has_graph) {
  if (has_graph && positions.requires_grad()) return positions;
  if (!positions.is_floating_point()) refuse_energy("the positions are not floating-point numbers");
  return (positions.is_inference() ? positions.clone() : positions.detach()).requires_grad_();
}

}  // namespace

at::Tensor adjoint(const TensorFunction& function, const at::Tensor& input, const at::Tensor& cotangent) {
  return Linearization(function, input, Linearization::Order::once).adjoint(cotangent);
}

at::Tensor tangent(const TensorFunction& function, const at::Tensor& input, const at::Tensor& direction) {
  return Linearization(function, input, Linearization::Order::twice).tangent(direction);
}

at::Tensor jacobian(const TensorFunction& function, const at::Tensor& input) {
  return Linearization(function, input, Linearization::Order::once).jacobian();
}

at::Tensor sample_jacobian(const TensorFunction& function, const at::Tensor& input) {
  return Linearization(function, input, Linearization::Order::once).sample_jacobian();
}

EnergyAndForces energy_and_forces(const TensorFunction& energy, const at::Tensor& positions) {
  const bool has_graph = at::GradMode::is_enabled();
  const at::AutoGradMode recorded(true);
  const auto from = recorded_positions(positions, has_graph);
  std::optional<simulation::PlainAttention> differentiable;
  if (has_graph) differentiable.emplace();
  const auto energies = energy(from);
  if (!energies.requires_grad()) refuse_energy("the energy does not depend on the positions");
  if (energies.is_complex()) refuse_energy("the energy is a complex number");
  const auto slope = torch::autograd::grad({energies.sum()}, {from}, {}, /*retain_graph=*/has_graph,
                                           /*create_graph=*/has_graph, /*allow_unused=*/true)
                         .front();
  if (!slope.defined()) refuse_energy("the energy does not depend on the positions");
  if (has_graph) return {.energy = energies, .forces = slope.neg()};
  return {.energy = energies.detach(), .forces = slope.detach().neg()};
}

}  // namespace hortator
