// larger_than_memory [FOLDER]: trains a model whose parameters, gradients and moments take 1.5 GiB, all in FOLDER or,
// by default, in memory, and prints the losses.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <hortator/hortator.hpp>
#include <iomanip>
#include <iostream>
#include <string>

namespace {

constexpr std::int64_t width = 1024;
constexpr int layers = 96;  // of 4 MiB

torch::nn::Sequential make_net() {
  at::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i)
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

void train(const std::string& folder) {
  hortator::Accelerator accelerator({.ddp = {.bucket_cap_mb = 4},
                                     .zero = {.stage = 3,
                                              .offload_optimizer = folder,
                                              .offload_parameters = folder,
                                              .resident_bytes = std::uint64_t{32} << 20}});
  auto net = hortator::construct_deferred(make_net);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 3; ++step) {
    const auto loss = model(at::ones({8, width})).square().mean();
    std::cout << std::setprecision(17) << loss.item<double>() << '\n';
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(model.parameters(), 1);
    optimizer.step();
    optimizer.zero_grad();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] { train(argc > 1 ? argv[1] : ""); });
}
