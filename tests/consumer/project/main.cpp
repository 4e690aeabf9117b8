#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/hortator.hpp>

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    hortator::Accelerator accelerator;
    torch::nn::Linear net(2, 1);
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    accelerator.backward(model(at::ones({4, 2})).sum());
    optimizer.step();
    accelerator.print("consumer of hortator ", HORTATOR_VERSION, ": gradient ", net->bias.grad().item<double>());
  });
}
