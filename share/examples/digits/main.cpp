// Trains, evaluates on each sample exactly once, tracks, saves checkpoints and resumes. Only the lines with
// `accelerator` are for distributed training.
//
//     hortator launch -n 2 digits --epochs 3
//     hortator launch -n 2 digits --epochs 5      resumes after the third epoch
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include <hortator/hortator.hpp>

#include "../support/options.hpp"
#include "digits.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "digits", "learns to read digits");
    const auto epochs = options.number("epochs", 3, "passes over the data, with those of earlier runs");
    const auto batch_size = options.number("batch-size", 32, "images of a rank in a batch");
    const auto rate = options.real("learning-rate", 1e-2, "highest learning rate");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({
        .mixed_precision = hortator::Precision::bf16,
        .gradient_accumulation_steps = 2,
        .log_with = {"tensorboard", "jsonl"},
        .project = {.dir = run_dir, .automatic_checkpoint_naming = true, .total_limit = 3},
    });
    hortator::set_seed(7);
    accelerator.init_trackers("digits", {{"learning_rate", rate}, {"batch_size", batch_size}});

    digits::ConvNet net;
    torch::optim::AdamW adamw(net->parameters(), rate);
    auto [model, optimizer, train, test, schedule] = accelerator.prepare(
        net, adamw, hortator::data_loader(digits::Digits("train"), {.batch_size = batch_size, .shuffle = true}),
        hortator::data_loader(digits::Digits("test"), {.batch_size = 64}),
        hortator::linear_warmup(adamw, {.warmup_steps = 16, .total_steps = epochs * 4096 / (2 * batch_size)}));

    if (accelerator.has_checkpoint()) accelerator.load_state();  // on any number of ranks; also within an epoch

    while (train.epoch() < epochs) {
      model.train();
      for (auto& batch : accelerator.progress(train, "epoch " + std::to_string(train.epoch()))) {
        auto micro_step = accelerator.accumulate(model);
        auto loss = torch::nn::functional::cross_entropy(model(batch.data), batch.target);
        accelerator.backward(loss);
        if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(model.parameters(), 1.0);
        optimizer.step();
        schedule.step();
        optimizer.zero_grad();

        accelerator.log({{"loss", loss}, {"lr", schedule.last_lr()}});
        accelerator.save_state_every(std::chrono::minutes(10));
        if (accelerator.should_stop()) return;  // the job's time is nearly over: saved, to resume later
      }
      accelerator.save_state();

      model.eval();
      std::int64_t right = 0;
      const torch::NoGradGuard no_grad;
      for (auto& batch : test) {
        auto [guess, truth] = accelerator.gather_for_metrics(model(batch.data).argmax(1), batch.target);
        right += guess.eq(truth).sum().item<std::int64_t>();
      }
      const double share = 100.0 * static_cast<double>(right) / static_cast<double>(test.dataset_size());
      accelerator.print("epoch ", train.epoch(), ": ", share, " % right");
      accelerator.get_tracker("tensorboard").log_text("right", std::to_string(share) + " %", train.epoch());
    }
    accelerator.end_training();
  });
}
