// Small weights: a trained model in a smaller type, in its files and in memory. And a hook that watches its results.
//
// save_model() writes the weights as bf16, whatever type the model has. attach_layerwise_casting_hooks() keeps them in
// memory as 8-bit numbers; each operator gets the weight that it uses in the type of the computation. add_hook() runs
// a function around each call of the model.
//
//     hortator launch -n 2 small_weights
//     hortator launch -n 2 small_weights --type float8      the files as well
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <hortator/bigmodel/layerwise_casting.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "small_weights", "keeps the weights of a trained model in a smaller type");
    const auto type = options.choice("type", {"bfloat16", "float8"}, "the type in the files");
    const auto width = options.number("width", 128, "width of the network");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    toy::Net net(width, 2);
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(8192), {.batch_size = 32, .shuffle = true}));

    double largest = 0;
    auto hook = model.add_hook({.after_forward = [&](torch::nn::Module&, std::vector<at::Tensor>& results) {
      largest = std::max(largest, results[0].abs().max().item<double>());
    }});
    for (auto& batch : train) {
      accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
      optimizer.step();
      optimizer.zero_grad();
    }
    hook.remove();
    accelerator.print("largest score in training ", largest);
    toy::report(accelerator, model);

    const auto dtype = type == "float8" ? at::kFloat8_e4m3fn : at::kBFloat16;
    accelerator.save_model(model, run_dir / "weights", {.dtype = dtype});
    accelerator.load_checkpoint_in_model(model, run_dir / "weights");
    accelerator.print("with the weights of the files:");
    toy::report(accelerator, model);

    auto casting = hortator::attach_layerwise_casting_hooks(net, at::kFloat8_e4m3fn);
    accelerator.print("with weights of ", casting.counters().offloaded_bytes / 1024, " KiB in a quarter of that:");
    toy::report(accelerator, model);
  });
}
