// Trains a model that does not fit into the memory of a rank. The model is plain torch::nn; only the options select how
// it is sharded: each rank owns a part of parameters, gradients and moments, and what is not in use is on the node's
// disk.
#include <torch/optim/adamw.h>

#include <filesystem>
#include <hortator/hortator.hpp>
#include <vector>

#include "../gpt/model.hpp"
#include "masked_loss.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    const auto scratch = std::filesystem::temp_directory_path();
    hortator::Accelerator accelerator({
        .mixed_precision = hortator::Precision::bf16,
        .zero = {.stage = 3, .offload_optimizer = scratch, .offload_parameters = scratch, .resident_bytes = 4 << 20},
        .project = {.dir = "runs/larger"},
    });
    hortator::set_seed(7);

    const gpt::ModelOptions shape{.context = 64, .layers = 12};
    auto net = hortator::construct_deferred([&] { return gpt::Gpt(shape); });  // no rank holds the whole model
    torch::optim::AdamW adamw(net->parameters(), 1e-3);
    const std::vector<std::filesystem::path> corpus = {"corpus.txt"};
    auto [model, optimizer, loader] =
        accelerator.prepare(net, adamw,
                            hortator::data_loader(hortator::TokenWindows(corpus, {.context = shape.context}),
                                                  {.batch_size = 4, .shuffle = true}));
    accelerator.load_checkpoint_in_model(model, "weights");  // each rank reads its own part

    for (auto& batch : accelerator.progress(loader, "larger")) {
      auto [loss_sum, tokens] = masked_cross_entropy(model(batch.data), batch.target);
      accelerator.backward(loss_sum, tokens);  // correct for ranks with different numbers of tokens
      accelerator.clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
      accelerator.log({{"loss", loss_sum / tokens}});
    }
    accelerator.save_state("runs/larger/final");
  });
}
