// Context parallelism: ranks that compute each batch together, with its sequences divided among them, so that the
// activations of a long sequence need the memory of several ranks.
//
// maybe_context_parallel() cuts the tensors of a batch and lets every scaled_dot_product_attention see the keys of all
// ranks. The model is an ordinary one: it is given the positions of its tokens, and asks for is_causal. Targets are
// made before the cut, since the token after a rank's last one belongs to another rank.
//
//     hortator launch -n 2 --context 2 context_parallel
//     hortator launch -n 2 --context 2 --context-attention ring context_parallel    keys travel, and are not gathered
//     hortator launch -n 2 context_parallel                 data parallelism, for comparison
#include <ATen/ATen.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <hortator/accelerator.hpp>
#include <hortator/run.hpp>
#include <hortator/training/random.hpp>

#include "../support/options.hpp"

namespace {

constexpr std::int64_t vocabulary = 16;
constexpr std::int64_t width = 32;

/// Sequences whose second half repeats the first: only a model that looks back that far can predict it.
struct Echoes {
  std::int64_t length;
  std::int64_t size() const { return 512; }
  hortator::Example<> get(std::int64_t i) const {
    const auto first = at::arange(length / 2).mul(i % 97 + 3).add(i).square().remainder(vocabulary);
    const auto ids = at::cat({first, first, first.narrow(0, 0, 1)});
    return {ids.narrow(0, 0, length), ids.narrow(0, 1, length)};
  }
};

struct DecoderImpl : torch::nn::Module {
  explicit DecoderImpl(std::int64_t length)
      : tokens(register_module("tokens", torch::nn::Embedding(vocabulary, width))),
        places(register_module("places", torch::nn::Embedding(length, width))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        mix(register_module("mix", torch::nn::Linear(width, 3 * width))),
        head(register_module("head", torch::nn::Linear(width, vocabulary))) {}

  at::Tensor forward(const at::Tensor& ids, const at::Tensor& positions) {
    const auto x = tokens(ids) + places(positions);
    const auto parts = mix(norm(x)).view({ids.size(0), ids.size(1), 3, 1, width}).permute({2, 0, 3, 1, 4});
    const auto mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    return head(x + mixed.transpose(1, 2).flatten(2));
  }

  torch::nn::Embedding tokens, places;
  torch::nn::LayerNorm norm;
  torch::nn::Linear mix, head;
};
TORCH_MODULE(Decoder);

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "context_parallel", "divides sequences over ranks");
    const auto epochs = options.number("epochs", 4, "passes over the data");
    const auto length = options.number("length", 64, "tokens of a sequence", 8);
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({.project = {.dir = run_dir}});
    hortator::set_seed(7);
    Decoder net(length);
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train] =
        accelerator.prepare(net, adamw, hortator::data_loader(Echoes{length}, {.batch_size = 16, .shuffle = true}));

    at::Tensor loss;
    std::int64_t own_tokens = 0;
    while (train.epoch() < epochs) {
      for (auto batch : train) {
        const auto divided = accelerator.maybe_context_parallel({{&batch.data, 1}, {&batch.target, 1}});
        own_tokens = batch.data.size(1);
        const auto logits = model(batch.data, divided.positions());
        loss = at::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten());
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    const auto mean = accelerator.reduce(loss.detach(), hortator::Reduce::mean).item<double>();
    accelerator.print("each rank had ", own_tokens, " of ", length, " tokens; last loss ", mean);
  });
}
