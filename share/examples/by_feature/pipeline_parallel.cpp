// Pipeline parallelism: each rank has consecutive layers of a model, and batches pass through them in micro-batches.
//
// Nothing in the model says how it is divided: it is cut between its parts, in the order in which they are registered.
// pipeline_step() takes the place of model() and backward(). The same program runs on one rank.
//
//     hortator launch -n 2 --pipeline 2 pipeline_parallel
//     hortator launch -n 2 --pipeline 2 --pipeline-schedule interleaved pipeline_parallel    two stages a rank
//     hortator launch -n 4 --pipeline 2 pipeline_parallel                                    two replicas of two stages
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <hortator/accelerator.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"

namespace {

constexpr std::int64_t vocabulary = 16, width = 32, length = 24;

/// Sequences in which each token is the last one times 3, plus a number that the first tokens show.
struct Rules {
  std::int64_t size() const { return 512; }
  hortator::Example<> get(std::int64_t i) const {
    auto ids = at::empty({length + 1}, at::kLong);
    auto* token = ids.mutable_data_ptr<std::int64_t>();
    token[0] = i % vocabulary;
    for (std::int64_t at = 1; at <= length; ++at) token[at] = (3 * token[at - 1] + i % 5) % vocabulary;
    return {ids.narrow(0, 0, length), ids.narrow(0, 1, length)};
  }
};

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        wide(register_module("wide", torch::nn::Linear(2 * width, 4 * width))),
        narrow(register_module("narrow", torch::nn::Linear(4 * width, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto y = norm(x);
    return x + narrow(at::gelu(wide(at::cat({y, y.roll(1, 1)}, -1))));
  }
  torch::nn::LayerNorm norm;
  torch::nn::Linear wide, narrow;
};
TORCH_MODULE(Block);

struct PredictorImpl : torch::nn::Module {
  explicit PredictorImpl(std::int64_t layers)
      : tokens(register_module("tokens", torch::nn::Embedding(vocabulary, width))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        head(register_module("head", torch::nn::Linear(width, vocabulary))) {
    for (std::int64_t i = 0; i < layers; ++i) blocks->push_back(Block());
  }
  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens(ids);
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return head(x);
  }

  torch::nn::Embedding tokens;
  torch::nn::ModuleList blocks;
  torch::nn::Linear head;
};
TORCH_MODULE(Predictor);

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "pipeline_parallel", "runs the layers of a model on several ranks");
    const auto epochs = options.number("epochs", 4, "passes over the data");
    const auto layers = options.number("layers", 8, "layers of the model");
    const auto micro_batches = options.number("micro-batches", 8, "parts of each batch");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    Predictor net(layers);
    torch::optim::AdamW adamw(net->parameters(), 3e-3);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(Rules(), {.batch_size = 32, .shuffle = true}));

    const auto loss_of = [](auto& model, auto& part) {
      return at::cross_entropy_loss(model(part.data).flatten(0, 1), part.target.flatten());
    };
    at::Tensor loss;
    while (train.epoch() < epochs) {
      for (const auto& batch : train) {
        loss = accelerator.pipeline_step(model, batch, loss_of, {.micro_batches = micro_batches});
        accelerator.clip_grad_norm_(model.parameters(), 1.0);
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    accelerator.print("last loss ", accelerator.reduce(loss, hortator::Reduce::mean).item<double>());
  });
}
