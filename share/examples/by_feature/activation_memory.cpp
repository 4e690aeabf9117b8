// Activation memory: train with less memory between forward and backward, without changing the model.
//
// recompute_layers() lets the layers of a torch::nn::Sequential keep only their input; backward computes the rest
// again. SavedTensors keeps what backward needs in a file, in the host's memory or in 16 bits. Both give the same
// gradients, bit by bit, unless tensors are kept in 16 bits.
//
//     hortator launch -n 2 activation_memory --recompute
//     hortator launch -n 2 activation_memory --spill
//     hortator launch -n 2 activation_memory --bf16
#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>

#include <filesystem>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <hortator/training/saved_tensors.hpp>
#include <optional>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

struct LayerImpl : torch::nn::Module {
  explicit LayerImpl(std::int64_t width) : linear(register_module("linear", torch::nn::Linear(width, width))) {}
  at::Tensor forward(const at::Tensor& x) { return x + at::gelu(linear(x)).tanh(); }
  torch::nn::Linear linear;
};
TORCH_MODULE(Layer);

struct DeepImpl : torch::nn::Module {
  explicit DeepImpl(std::int64_t width) {
    layers->push_back(torch::nn::Linear(2, width));
    for (int i = 0; i < 6; ++i) layers->push_back(Layer(width));
    layers->push_back(torch::nn::Linear(width, 3));
    register_module("layers", layers);
  }
  at::Tensor forward(const at::Tensor& points) { return layers->forward(points); }
  torch::nn::Sequential layers;
};
TORCH_MODULE(Deep);

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "activation_memory", "trains with less memory for activations");
    const auto recomputes = options.flag("recompute", "compute the layers again in backward");
    const auto spills = options.flag("spill", "keep what backward needs in a file in TMPDIR");
    const auto rounds = options.flag("bf16", "keep what backward needs in bfloat16");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    Deep net(64);
    if (recomputes)
      accelerator.print(hortator::recompute_layers(net, {.classes = {"Layer"}}), " layers are recomputed");
    torch::optim::AdamW adamw(net->parameters(), 1e-3);
    auto [model, optimizer, loader] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(2048), {.batch_size = 128, .shuffle = true}));

    hortator::SavedTensorOptions kept{.min_bytes = 1024};
    if (spills) kept.folder = std::filesystem::temp_directory_path();
    if (rounds) kept.dtype = at::kBFloat16;
    std::int64_t moved = 0;
    double last = 0;
    while (loader.epoch() < 3) {
      for (auto& batch : loader) {
        std::optional<hortator::SavedTensors> saved;  // in effect until the end of forward
        if (spills || rounds) saved.emplace(kept);
        const auto loss = at::cross_entropy_loss(model(batch.data), batch.target);
        if (saved) moved = saved->kept_bytes();
        saved.reset();
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        last = loss.item<double>();
      }
    }
    accelerator.print(moved / 1024, " KiB of each step were kept elsewhere");
    const auto loss = accelerator.reduce(at::full({}, last, at::kDouble), hortator::Reduce::mean).item<double>();
    accelerator.print("last loss ", loss);
  });
}
