// Trains a small GPT on text. Runs as a single process, under mpirun and under srun; only the lines with `accelerator`
// are for distributed training.
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <hortator/hortator.hpp>
#include <iostream>
#include <optional>

#include "../support/loss_log.hpp"
#include "model.hpp"
#include "options.hpp"
#include "sample.hpp"
#include "text.hpp"

namespace {

namespace nn = torch::nn::functional;

/// Returns the loss in nats per byte over the held-out text; each window counts once on any number of ranks.
template <typename Model, typename Loader>
double evaluate(hortator::Accelerator& accelerator, Model& model, Loader& loader) {
  torch::NoGradGuard no_grad;
  model.eval();
  double sum = 0;
  for (auto& batch : loader) {
    auto losses = nn::cross_entropy(model(batch.data).transpose(1, 2), batch.target,
                                    nn::CrossEntropyFuncOptions().reduction(torch::kNone));
    sum += accelerator.gather_for_metrics(losses.mean(1)).sum().template item<double>();
  }
  model.train();
  return sum / static_cast<double>(loader.dataset_size());
}

void train(const gpt::Options& options) {
  hortator::Accelerator accelerator({.cpu = options.cpu,
                                     .data = {.split_batches = true},
                                     .schedule_step = hortator::ScheduleStep::per_update,
                                     .project = {.dir = options.run_dir}});
  hortator::set_seed(options.seed);

  const auto text = gpt::Text::read(options.text);
  const auto context = options.model.context;
  gpt::Gpt net(options.model);
  torch::optim::AdamW adamw(net->parameters(),
                            torch::optim::AdamWOptions(options.learning_rate).betas({0.9, 0.95}).weight_decay(0.1));

  auto [model, optimizer, training, held_out, schedule] = accelerator.prepare(
      net, adamw,
      hortator::data_loader(
          hortator::TokenWindows(text.training, {.context = context, .count = options.steps * options.batch_size}),
          {.batch_size = options.batch_size, .shuffle = true}),
      hortator::data_loader(hortator::TokenWindows(text.held_out, {.context = context}),
                            {.batch_size = options.batch_size}),
      hortator::cosine_warmup(adamw,
                              {.warmup_steps = options.steps / 20, .total_steps = options.steps, .floor = 0.05}));

  accelerator.print("training ", net->parameter_count(), " parameters on ", text.files, " files, ",
                    text.training.numel(), " bytes; ", text.held_out.numel(), " more bytes are held out");
  if (accelerator.has_checkpoint()) {
    accelerator.load_state();
    accelerator.print("the run in ", options.run_dir.string(), " resumes at step ", schedule.steps(), " of ",
                      options.steps);
  }

  std::optional<example::LossLog> log;
  accelerator.on_main_process(
      [&] { log.emplace(options.run_dir / "loss.csv", schedule.steps(), "loss,learning_rate"); });

  const auto last_step = options.stop_after > 0 ? schedule.steps() + options.stop_after : options.steps;
  for (auto& batch : accelerator.progress(training, "gpt")) {
    auto loss = nn::cross_entropy(model(batch.data).flatten(0, 1), batch.target.flatten());
    accelerator.backward(loss);
    torch::nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();

    const auto step = schedule.steps();
    accelerator.log({{"loss", loss}});
    if (log) log->add(step, {loss.item<double>(), schedule.last_lr()});
    const bool is_last = step == last_step || training.end_of_dataloader();
    if (is_last || step % options.checkpoint_every == 0) accelerator.save_state();
    if (step == last_step && step < options.steps) break;
    if (accelerator.should_stop()) return;  // the job's time is nearly over: saved, to resume later
  }
  if (schedule.steps() < options.steps) {
    accelerator.print("stopped after step ", schedule.steps(), " as requested; the same command resumes from there");
    return;
  }

  const double loss = evaluate(accelerator, model, held_out);
  accelerator.print("held-out text: ", loss, " nats per byte, perplexity ", std::exp(loss), " (guessing: 256)");
  accelerator.on_main_process([&] { std::cout << "\n" << gpt::sample(net, options.prompt) << "\n\n"; });
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const auto options = gpt::parse_options(argc, argv);
    if (options.help) {
      hortator::State().print(gpt::usage());
    } else {
      train(options);
    }
  });
}
