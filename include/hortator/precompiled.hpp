#pragma once

// All of Hortator, and the parts of LibTorch that training programs use, as a precompiled header:
// target_precompile_headers(train PRIVATE <hortator/precompiled.hpp>).
#include <hortator/hortator.hpp>
#ifdef __clang__
#include <hortator/detail/precompiled_torch.hpp>
#include <utility>

// What most programs instantiate is used here, so that it is instantiated in the header itself.
namespace hortator::precompiled {

inline void use_training() {
  using namespace torch::nn;
  Sequential(Linear(1, 1), Tanh(), ReLU(), GELU(), Dropout(), Flatten(), Embedding(1, 1),
             LayerNorm(LayerNormOptions({1})), Conv2d(Conv2dOptions(1, 1, 1)), BatchNorm2d(1), MaxPool2d(1));
  auto& accelerator = some<Accelerator>();
  auto loader = data_loader(some<TensorDataset<2>>(), some<LoaderOptions>());
  const auto train = [&]<typename Optimizer>(Optimizer& optimizer) {
    auto [model, step, batches] = accelerator.prepare(some<Sequential>(), optimizer, std::move(loader));
    for (auto& batch : accelerator.progress(batches, "")) {
      const auto loss = model(batch.data);
      accelerator.backward(loss);
      step.step();
      step.zero_grad();
      accelerator.log({{"", loss}});
      accelerator.gather_for_metrics(loss, batch.target);
    }
  };
  train(some<torch::optim::Adam>());
  train(some<torch::optim::AdamW>());
  train(some<torch::optim::SGD>());
  accelerator.print("", 0.0);
  const auto main = [] {};
  run(0, nullptr, main);
}

}  // namespace hortator::precompiled
#else
#include <torch/nn/module.h>
#endif
