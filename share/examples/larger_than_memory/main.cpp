// Trains a model that does not fit into the memory of a rank. The model is plain torch::nn; only the options select how
// it is sharded: each rank owns a part of parameters, gradients and moments, and what is not in use is on the node's
// disk.
//
// It trains a GPT on the bytes of a file, from random weights or from those of a checkpoint, for example one that the
// example gpt has made:
//
//     hortator launch -n 2 gpt --context 64 --layers 12 --steps 100 --run-dir runs/gpt
//     hortator launch -n 2 larger_than_memory --text book.txt --weights runs/gpt/checkpoint --scratch /local/disk
#include <torch/optim/adamw.h>

#include <filesystem>
#include <hortator/hortator.hpp>
#include <vector>

#include "../gpt/model.hpp"
#include "../support/options.hpp"
#include "masked_loss.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "larger_than_memory", "trains a model that is mostly on disk");
    const std::filesystem::path text = options.text("text", "", "file to train on; required");
    const std::filesystem::path weights = options.text("weights", "", "checkpoint to begin with, else random weights");
    const std::filesystem::path scratch =
        options.text("scratch", std::filesystem::temp_directory_path(), "folder on a disk of the node");
    const gpt::ModelOptions shape{.context = options.number("context", 64, "context length of the model, in bytes"),
                                  .layers = options.number("layers", 12, "layers of the transformer")};
    const auto run_dir = options.run_dir();
    if (options.help()) return;
    if (text.empty()) throw hortator::UsageError({.what = "--text: expected a file to train on"});

    hortator::Accelerator accelerator({
        .mixed_precision = hortator::Precision::bf16,
        .zero = {.stage = 3, .offload_optimizer = scratch, .offload_parameters = scratch, .resident_bytes = 4 << 20},
        .project = {.dir = run_dir},
    });
    hortator::set_seed(7);

    auto net = hortator::construct_deferred([&] { return gpt::Gpt(shape); });  // no rank holds the whole model
    torch::optim::AdamW adamw(net->parameters(), 1e-3);
    const std::vector<std::filesystem::path> corpus = {text};
    auto [model, optimizer, loader] =
        accelerator.prepare(net, adamw,
                            hortator::data_loader(hortator::TokenWindows(corpus, {.context = shape.context}),
                                                  {.batch_size = 4, .shuffle = true}));
    if (!weights.empty()) accelerator.load_checkpoint_in_model(model, weights);  // each rank reads its own part

    for (auto& batch : accelerator.progress(loader, "larger")) {
      auto [loss_sum, tokens] = masked_cross_entropy(model(batch.data), batch.target);
      accelerator.backward(loss_sum, tokens);  // correct for ranks with different numbers of tokens
      accelerator.clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
      accelerator.log({{"loss", loss_sum / tokens}});
    }
    accelerator.save_state(run_dir / "final");
  });
}
