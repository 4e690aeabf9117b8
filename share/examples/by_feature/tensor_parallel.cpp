// Tensor parallelism: several ranks compute each batch together, and each holds its part of the layers. The model is
// plain torch::nn and knows nothing of it; a plan says which layers are divided. Losses are those of one rank up to
// rounding, and checkpoints and exports hold whole parameters.
//
//     hortator launch -n 2 tensor_parallel --tensor 2
//     hortator launch -n 2 tensor_parallel --tensor 1      two replicas: gives the same model up to rounding
//     hortator launch -n 4 tensor_parallel --tensor 2 --stage 2      the parts' gradients and moments sharded
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "tensor_parallel", "divides the layers of a model among ranks");
    const auto tensor = static_cast<int>(options.number("tensor", 2, "ranks that compute each batch together", 1));
    const auto width = options.number("width", 64, "width of the network; tensor must divide it");
    const auto stage =
        static_cast<int>(options.number("stage", 0, "of ZeRO, over the ranks of different batches: 0 to 3", 0));
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    using hortator::TensorDivision;
    // In each pair of layers, the first is divided by its outputs, and the second by its inputs.
    const hortator::TensorPlan plan = {{"layer0", TensorDivision::columns},
                                       {"layer1", TensorDivision::rows},
                                       {"layer2", TensorDivision::columns},
                                       {"layer3", TensorDivision::rows}};
    hortator::Accelerator accelerator({.data = {.split_batches = true},
                                       .zero = {.stage = stage},
                                       .parallel = {.tensor = tensor, .plan = plan},
                                       .project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net(width, /*layers=*/2);
    const auto all = toy::count_numbers(net->parameters());
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 64, .shuffle = true}));
    accelerator.print("rank 0 holds ", toy::count_numbers(model.parameters()), " of ", all, " numbers");

    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
        accelerator.clip_grad_norm_(model.parameters(), 1.0);  // the norm of all parts together
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    toy::report(accelerator, model);
    accelerator.save_model(model, run_dir / "weights");  // whole
  });
}
