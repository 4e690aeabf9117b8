// Training on forces: a potential is learned from the forces that follow from it.
//
// The model computes an energy. energy_and_forces() differentiates it by the positions, as a part of the graph, so that
// the loss of the forces trains the model. The potential is made up: V(x, y) = (x^2 - 1)^2 + 2 y^2, with known forces.
// Its Jacobian of the forces, the Hessian with the opposite sign, is printed where it is known.
//
//     hortator launch -n 2 forces --steps 600
#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <hortator/accelerator.hpp>
#include <hortator/derivatives.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"

namespace {

at::Tensor energy_of(const at::Tensor& positions) {
  const auto x = positions.select(1, 0), y = positions.select(1, 1);
  return ((x * x - 1).pow(2) + 2 * y * y).unsqueeze(1);
}

at::Tensor forces_of(const at::Tensor& positions) {
  const auto x = positions.select(1, 0), y = positions.select(1, 1);
  return at::stack({-4 * x * (x * x - 1), -4 * y}, 1);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "forces", "learns a potential from energies and forces");
    const auto steps = options.number("steps", 600, "updates");
    const auto weight = options.real("force-weight", 1, "what the loss of the forces counts; 0: only energies");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(3, {.device_specific = true});
    using namespace torch::nn;
    Sequential net(Linear(2, 32), Tanh(), Linear(32, 32), Tanh(), Linear(32, 1));
    torch::optim::AdamW adamw(net->parameters(), 5e-3);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto energy = [&model = model](const at::Tensor& positions) { return model(positions); };

    for (std::int64_t step = 0; step < steps; ++step) {
      const auto positions = at::rand({8, 2}, accelerator.device()) * 3 - 1.5;
      const auto [energies, forces] = hortator::energy_and_forces(energy, positions);
      accelerator.backward(at::mse_loss(energies, energy_of(positions)) +
                           weight * at::mse_loss(forces, forces_of(positions)));
      optimizer.step();
      optimizer.zero_grad();
    }

    const auto positions = at::rand({500, 2}, accelerator.device()) * 3 - 1.5;
    model.train(false);
    const at::NoGradGuard no_grad;
    const auto [energies, forces] = hortator::energy_and_forces(energy, positions);
    const auto error = accelerator.reduce(at::mse_loss(forces, forces_of(positions)), hortator::Reduce::mean);
    accelerator.print("error of the forces ", error.sqrt().item<double>());
    const auto bottom = at::tensor({1.F, 0.F}, positions.options()).view({1, 2});
    const auto curvature = hortator::sample_jacobian(
        [&](const at::Tensor& x) { return hortator::energy_and_forces(energy, x).forces; }, bottom);
    accelerator.print("curvatures at (1, 0), which are 8 and 4: ", -curvature[0][0][0].item<double>(), " and ",
                      -curvature[0][1][1].item<double>());
  });
}
