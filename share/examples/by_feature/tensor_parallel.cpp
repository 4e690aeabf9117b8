// Tensor parallelism: several ranks compute each batch together, and each holds its part of the layers. The model is
// plain torch::nn and knows nothing of it; a plan says which layers are divided. Losses are those of one rank up to
// rounding, and checkpoints and exports hold whole parameters.
//
//     hortator launch -n 2 tensor_parallel --tensor 2
//     hortator launch -n 2 tensor_parallel --tensor 1      two replicas: gives the same model up to rounding
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// A layer whose inner features can be divided: `up` by its outputs, `down` by its inputs.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(std::int64_t width)
      : up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}
  at::Tensor forward(const at::Tensor& x) { return x + down(at::gelu(up(x))); }
  torch::nn::Linear up, down;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width)
      : in(register_module("in", torch::nn::Linear(2, width))),
        first(register_module("first", Block(width))),
        second(register_module("second", Block(width))),
        out(register_module("out", torch::nn::Linear(width, 3))) {}
  at::Tensor forward(const at::Tensor& x) { return out(second(first(at::gelu(in(x))))); }
  torch::nn::Linear in;
  Block first, second;
  torch::nn::Linear out;
};
TORCH_MODULE(Net);

std::int64_t count(const std::vector<at::Tensor>& parameters) {
  std::int64_t numbers = 0;
  for (const auto& parameter : parameters) numbers += parameter.numel();
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "tensor_parallel", "divides the layers of a model among ranks");
    const auto tensor = static_cast<int>(options.number("tensor", 2, "ranks that compute each batch together", 1));
    const auto width = options.number("width", 32, "width of the network; tensor must divide four times as many");
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    using hortator::TensorDivision;
    const hortator::TensorPlan plan = {{"up", TensorDivision::columns}, {"down", TensorDivision::rows}};
    hortator::Accelerator accelerator(
        {.data = {.split_batches = true}, .parallel = {.tensor = tensor, .plan = plan}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    Net net(width);
    const auto all = count(net->parameters());
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 64, .shuffle = true}));
    accelerator.print("rank 0 holds ", count(model.parameters()), " of ", all, " numbers");

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
