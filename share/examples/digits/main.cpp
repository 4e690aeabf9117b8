// Trains, evaluates on each sample exactly once, tracks, saves checkpoints and resumes. Only the lines with
// `accelerator` are for distributed training.
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include <hortator/hortator.hpp>

#include "digits.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    hortator::Accelerator accelerator({
        .mixed_precision = hortator::Precision::bf16,
        .gradient_accumulation_steps = 2,
        .log_with = {"tensorboard", "jsonl"},
        .project = {.dir = "runs/digits", .automatic_checkpoint_naming = true, .total_limit = 3},
    });
    hortator::set_seed(7);
    accelerator.init_trackers("digits", {{"learning_rate", 1e-2}, {"batch_size", 32}});

    digits::ConvNet net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, train, test, schedule] = accelerator.prepare(
        net, adamw, hortator::data_loader(digits::Digits("train"), {.batch_size = 32, .shuffle = true}),
        hortator::data_loader(digits::Digits("test"), {.batch_size = 64}),
        hortator::linear_warmup(adamw, {.warmup_steps = 16, .total_steps = 192}));

    if (accelerator.has_checkpoint()) accelerator.load_state();  // on any number of ranks; also within an epoch

    while (train.epoch() < 3) {
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
