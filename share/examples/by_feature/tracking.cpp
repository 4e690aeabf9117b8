// Tracking: numbers of the run for TensorBoard, spreadsheets, `hortator plot`, and a tracker of your own.
//
// log() may be called on every rank; the main process keeps the numbers. It takes tensors as they are: they are read at
// the next call, so that no step waits for the device. The files are in logs/ of the run's folder:
//
//     hortator launch -n 2 tracking
//     hortator plot runs/tracking -o loss.svg
//     tensorboard --logdir runs/tracking/logs
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <hortator/run.hpp>
#include <hortator/training/random.hpp>
#include <hortator/training/schedules.hpp>
#include <iostream>

#include "../support/options.hpp"
#include "toy.hpp"

namespace {

/// A tracker of your own receives every record. This one prints the lowest loss at the end.
class LowestLoss : public hortator::Tracker {
 public:
  std::string name() const override { return "lowest"; }
  void log(const hortator::TrackerRecord& record) override {
    for (const auto& [key, value] : record.values) {
      if (key != "loss" || value >= lowest_) continue;
      lowest_ = value;
      step_ = record.step;
    }
  }
  void finish() override { std::cout << "lowest loss " << lowest_ << " at step " << step_ << std::endl; }

 private:
  double lowest_ = 1e9;
  std::int64_t step_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    example::Options options(argc, argv, "tracking", "logs to TensorBoard, CSV, JSON lines and a tracker of its own");
    const auto epochs = options.number("epochs", 4, "passes over the data");
    const auto rate = options.real("learning-rate", 1e-2, "highest learning rate");
    const auto run_dir = options.run_dir();
    if (options.help()) return;

    hortator::Accelerator accelerator({
        .log_with = {"tensorboard", "csv", "jsonl", std::make_shared<LowestLoss>()},
        .project = {.dir = run_dir},
    });
    hortator::set_seed(7);
    accelerator.init_trackers("rings", {{"epochs", epochs}, {"learning_rate", rate}});

    toy::Net net;
    torch::optim::AdamW adamw(net->parameters(), rate);
    auto [model, optimizer, train, schedule] =
        accelerator.prepare(net, adamw, hortator::data_loader(toy::Rings(1536), {.batch_size = 32, .shuffle = true}),
                            hortator::linear_warmup(adamw, {.warmup_steps = 20, .total_steps = 48 * epochs}));

    while (train.epoch() < epochs) {
      for (auto& batch : accelerator.progress(train, "tracking")) {
        const auto loss = at::cross_entropy_loss(model(batch.data), batch.target);
        accelerator.backward(loss);
        optimizer.step();
        schedule.step();
        optimizer.zero_grad();
        accelerator.log({{"loss", loss}, {"learning_rate", schedule.last_lr()}});
      }
      auto& board = accelerator.get_tracker("tensorboard");
      board.log_text("state", "finished epoch " + std::to_string(train.epoch()), train.epoch());
      board.log_histogram("first layer", model.parameters().front(), train.epoch());
    }
    toy::report(accelerator, model);
    accelerator.end_training();
  });
}
