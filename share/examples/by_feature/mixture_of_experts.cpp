// Mixtures of experts: a router sends each point to two of eight small networks, and a balance loss makes it use all of
// them. With --experts 2 each of two ranks holds half of the experts, and points travel to the ranks of their experts
// and back. Losses are those of one rank up to rounding, and exports hold all experts.
//
//     hortator launch -n 2 mixture_of_experts --experts 2
//     hortator launch -n 2 mixture_of_experts --experts 1      each rank has all experts: the same model up to rounding
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/nn/moe.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

struct ExpertNetImpl : torch::nn::Module {
  explicit ExpertNetImpl(std::int64_t width)
      : enter(register_module("enter", torch::nn::Linear(2, width))),
        experts(register_module("experts", hortator::nn::MoE(hortator::nn::MoEOptions{
                                               .width = width, .inner = 2 * width, .experts = 8, .top_k = 2}))),
        leave(register_module("leave", torch::nn::Linear(width, 3))) {}

  at::Tensor forward(const at::Tensor& points) {
    const auto x = at::tanh(enter(points));
    return leave(x + experts(x));
  }

  torch::nn::Linear enter;
  hortator::nn::MoE experts;
  torch::nn::Linear leave;
};
TORCH_MODULE(ExpertNet);

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "mixture_of_experts", "divides the experts of a model among ranks");
    const auto experts = static_cast<int>(options.number("experts", 2, "ranks that divide the experts among them", 1));
    const auto epochs = options.number("epochs", 6, "passes over the data");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.parallel = {.experts = experts}, .project = {.dir = run_dir}});
    hortator::set_seed(7);
    ExpertNet net(32);
    const auto all = toy::count_numbers(net->parameters());
    torch::optim::AdamW adamw(net->parameters(), 5e-3);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}));
    accelerator.print("rank 0 holds ", toy::count_numbers(model.parameters()), " of ", all, " numbers");

    at::Tensor loss, balance;
    while (train.epoch() < epochs) {
      for (auto& batch : train) {
        loss = at::cross_entropy_loss(model(batch.data), batch.target);
        balance = hortator::nn::load_balancing_loss(*net);  // over the points of all ranks
        accelerator.backward(loss + 0.01 * balance);
        accelerator.clip_grad_norm_(model.parameters(), 1.0);  // each expert counts once
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    const auto losses = accelerator.reduce(at::stack({loss.detach(), balance.detach()}), hortator::Reduce::mean);
    accelerator.print("last loss ", losses[0].item<double>(), ", balance ", losses[1].item<double>(), " (even: 2)");
    accelerator.save_model(model, run_dir / "weights");  // all experts
  });
}
