// Fine-tunes any causal language model of hortator::models on text, or trains one with random weights. Documents are
// packed into windows; the loss of a step is the mean over all its tokens, on any number of ranks.
//
//     hortator launch -n 2 language_model --model SmolLM2-135M --text book.txt --zero 3 --recompute
//     hortator launch -n 4 language_model --model SmolLM2-135M --text book.txt --tensor 2 --context 2
//     hortator launch -n 4 language_model --model SmolLM2-135M --text book.txt --pipeline 4
//     hortator launch -n 2 language_model --model SmolLM2-135M --text book.txt --lora 16
//     hortator launch -n 2 language_model --model SmolLM2-135M --text train.parquet --column text
#include <torch/optim/adamw.h>

#include <algorithm>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "../support/axes.hpp"
#include "../support/loss_log.hpp"
#include "../support/options.hpp"
#include "documents.hpp"

namespace {

namespace models = hortator::models;

struct Options {
  language_model::TextOptions text;
  bool random_weights = false, recompute = false, cpu = false;
  std::int64_t steps = 0, batch_size = 0, context = 0, zero = 0, checkpoint_every = 0, stop_after = 0, warmup_steps = 0,
               seed = 0;
  example::Axes axes;
  double learning_rate = 0, weight_decay = 0;
  std::string precision, reproducible;
  hortator::LoraOptions lora;
  std::string quantise, quantise_scores;
  bool trains_adapter = false, has_adapter_options = false;
  std::filesystem::path run_dir;
};

/// The options of an adapter, which is trained in place of the model with --lora.
void parse_adapter(example::Options& options, Options& found) {
  const auto rank = options.number("lora", 0, "trains a LoRA adapter of this rank, not the model; 0: the model", 0);
  const auto alpha = options.real("lora-alpha", 0, "scales the adapter's outputs by this / rank; 0: 2 x rank");
  found.lora.targets =
      options.texts("lora-targets", "layers with an adapter, by the ends of their names, or all-linear");
  found.lora.dropout = options.real("lora-dropout", 0, "of what the adapter reads");
  found.quantise = options.choice("quantise", {"no", "int8", "int4", "nf4", "file"},
                                  "with --lora: format of the frozen weights; file: that of a GGUF file");
  found.quantise_scores = options.choice("quantise-scores", {"int8", "int4", "nf4", "no"},
                                         "with --quantise: the same for the layer that scores tokens");
  found.trains_adapter = rank > 0;
  found.lora.rank = rank;
  found.lora.alpha = alpha != 0 ? alpha : 2 * static_cast<double>(rank);
  found.has_adapter_options =
      alpha != 0 || found.quantise != "no" || !found.lora.targets.empty() || found.lora.dropout != 0;
}

/// Returns nothing if --help was given.
std::optional<Options> parse(int argc, char** argv) {
  example::Options options(argc, argv, "language_model", "trains a causal language model on text");
  Options found;
  found.text.model = options.required("model", "folder with config.json, weights and tokenizer.json");
  for (const auto& file : options.texts("text", "files to train on: plain text, Parquet or Arrow"))
    found.text.files.emplace_back(file);
  found.text.bytes = options.flag("bytes", "each byte is a token; no tokenizer is needed");
  found.text.documents = options.choice("documents", {"file", "line"}, "what is a document, kept apart from others");
  found.text.column = options.text("column", "text", "the column of Parquet and Arrow files; a row is a document");
  found.random_weights = options.flag("random-weights", "trains from scratch; the folder needs only config.json");
  found.steps = options.number("steps", 100, "steps of the training");
  found.batch_size = options.number("batch-size", 8, "windows per step, over all ranks");
  found.context = options.number("context-length", 512, "tokens in a window");
  found.learning_rate = options.real("learning-rate", 2e-5, "rate after the warm-up");
  found.warmup_steps = options.number("warmup-steps", 0, "steps in which the rate rises", 0);
  found.weight_decay = options.real("weight-decay", 0, "of AdamW");
  found.precision = options.choice("precision", {"fp32", "bf16"}, "in which the model computes");
  found.reproducible = options.choice("reproducible", {"no", "mesh"},
                                      "mesh: the same bits on 1, 2, 4 or 8 ranks, at each stage of ZeRO, in pipelines");
  found.zero = options.number("zero", 0, "stage of ZeRO: 1 shards moments, 2 gradients, 3 parameters", 0);
  found.axes = example::Axes::parse_with_pipeline(options);
  parse_adapter(options, found);
  found.recompute = options.flag("recompute", "recomputes layers in backward, which takes less memory");
  found.checkpoint_every = options.number("checkpoint-every", 100, "steps between checkpoints");
  found.stop_after = options.number("stop-after", 0, "save and stop after N steps; 0: train to the end", 0);
  found.seed = options.number("seed", 7, "seed of all random numbers", 0);
  found.cpu = options.flag("cpu", "stay on the CPU");
  found.run_dir = options.run_dir();
  if (options.help()) return {};
  if (found.has_adapter_options && !found.trains_adapter)
    throw hortator::UsageError(
        {.what = "--lora-alpha, --lora-targets, --lora-dropout and --quantise: expected --lora RANK as well"});
  if (found.text.files.empty())
    throw hortator::UsageError({.what = "--text: a value is missing", .hint = "name files to train on"});
  if (found.zero > 3)
    throw hortator::UsageError({.what = "--zero: expected 0 to 3, got " + std::to_string(found.zero)});
  return found;
}

hortator::QuantiseOptions packing(const Options& options) {
  hortator::QuantiseOptions chosen{.format = hortator::parse_weight_format(options.quantise)};
  if (options.quantise_scores != "no") chosen.scoring = hortator::parse_weight_format(options.quantise_scores);
  return chosen;
}

/// Its weights are read in prepare(), one after the other, so that a rank never holds more than its part of them.
std::shared_ptr<models::PretrainedModel> make_model(const Options& options) {
  auto net = hortator::construct_deferred([&] {
    return options.random_weights
               ? models::from_config(options.text.model)
               : models::from_pretrained(options.text.model, {.keep_packed = options.quantise == "file"});
  });
  const auto& config = net->config();
  const auto parameters = net->parameters();
  const auto is_packed = [](const at::Tensor& weight) { return weight.scalar_type() == at::kByte; };
  if (options.quantise == "file" && std::none_of(parameters.begin(), parameters.end(), is_packed))
    throw hortator::UsageError({.what = "--quantise file: no weight of '" + options.text.model.string() + "' is packed",
                                .hint = "expected a GGUF file with matrices of Q8_0, Q4_0 or Q4_1, or a packed model"});
  if (!config.is_causal)
    throw hortator::UsageError({.what = "--model: a " + config.architecture + " does not predict the next token"});
  if (config.has_learned_positions && options.context > config.max_positions)
    throw hortator::UsageError(
        {.what = "--context-length: the model has only " + std::to_string(config.max_positions) + " positions"});
  if (options.recompute) net->set_recompute_layers(true);
  if (options.quantise != "no" && options.quantise != "file") hortator::quantise(net, packing(options));
  if (options.trains_adapter) hortator::lora(net, options.lora);
  net->train();
  return net;
}

hortator::PackedWindows read_windows(const Options& options, const models::ModelConfig& config) {
  hortator::PackedWindowsOptions packing{.context = options.context};
  if (!options.text.bytes && !config.eos_token_ids.empty()) packing.end_token = config.eos_token_ids.front();
  return {language_model::read_documents(options.text, config), packing};
}

/// The gradients of the mean loss over the tokens of all ranks. Returns sums of losses and numbers of tokens of this
/// rank, [1, 2] or along a pipeline those of each micro-batch, of whole windows or, along the axis context, of this
/// rank's parts of them.
template <typename Model>
at::Tensor backward(hortator::Accelerator& accelerator, Model& model, hortator::PackedTokens& batch) {
  const auto divided = accelerator.maybe_context_parallel(
      {{&batch.ids, 1}, {&batch.positions, 1}, {&batch.documents, 1}, {&batch.targets, 1}});
  const auto loss_of = [](Model& net, hortator::PackedTokens& part) {
    const auto loss = net(models::ModelInputs{.input_ids = part.ids,
                                              .position_ids = part.positions,
                                              .document_ids = part.documents,
                                              .targets = part.targets})
                          .loss_sum;
    return std::pair(loss, part.targets.ge(0).sum());
  };
  if (hortator::parallel::ranks_along(hortator::parallel::Axis::pipeline) > 1) {
    at::Tensor losses;
    accelerator.pipeline_step(model, batch, loss_of, {.losses = &losses});
    return losses.to(accelerator.device());
  }
  const auto [loss, tokens] = loss_of(model, batch);
  accelerator.backward(loss, tokens);
  return at::stack({loss.detach().to(at::kDouble), tokens.to(at::kDouble)}).view({1, 2});
}

void train(const Options& options) {
  const auto precision = options.precision == "bf16" ? hortator::Precision::bf16 : hortator::Precision::no;
  hortator::Accelerator accelerator({.mixed_precision = precision,
                                     .cpu = options.cpu,
                                     .data = {.split_batches = true},
                                     .zero = {.stage = static_cast<int>(options.zero)},
                                     .parallel = options.axes.config(),
                                     .reproducible = options.reproducible == "mesh",
                                     .schedule_step = hortator::ScheduleStep::per_update,
                                     .project = {.dir = options.run_dir}});
  hortator::set_seed(static_cast<std::uint64_t>(options.seed));

  auto net = make_model(options);
  const auto windows = read_windows(options, net->config());
  torch::optim::AdamW adamw(hortator::trainable_parameters(net),
                            torch::optim::AdamWOptions(options.learning_rate).weight_decay(options.weight_decay));
  auto [model, optimizer, loader, schedule] = accelerator.prepare(
      net, adamw, hortator::data_loader(windows, {.batch_size = options.batch_size, .shuffle = true}),
      hortator::linear_warmup(adamw, {.warmup_steps = options.warmup_steps, .total_steps = options.steps}));
  accelerator.print("training on ", windows.tokens(), " tokens in ", windows.size(), " windows");

  if (accelerator.has_checkpoint()) {
    accelerator.load_state();
    accelerator.print("resumes at step ", schedule.steps(), " of ", options.steps);
  }
  std::optional<example::LossLog> log;
  accelerator.on_main_process([&] { log.emplace(options.run_dir / "loss.csv", schedule.steps()); });
  const auto last_step =
      options.stop_after > 0 ? std::min(options.steps, schedule.steps() + options.stop_after) : options.steps;

  const bool is_reproducible = options.reproducible == "mesh";
  std::vector<at::Tensor> losses;  // of this rank's batches of the step: sums and numbers of tokens
  while (schedule.steps() < last_step) {
    for (auto& batch : accelerator.progress(loader, "language_model")) {
      losses.push_back(backward(accelerator, model, batch));
      accelerator.clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;  // with --reproducible a step has several batches on a rank

      const auto step = schedule.steps();
      const auto parts = at::cat(std::exchange(losses, {}));  // gathered, they are summed in the order of the batch
      const auto sums = (is_reproducible ? accelerator.gather(parts) : accelerator.reduce(parts)).sum(0).cpu();
      const auto mean = (sums[0] / sums[1].clamp_min(1)).item<double>();
      accelerator.log({{"loss", mean}, {"lr", schedule.last_lr()}});
      if (log) log->add(step, {mean});
      if (step == last_step || step % options.checkpoint_every == 0)
        accelerator.save_state({}, {.only_trainable = options.trains_adapter});
      if (step == last_step) break;
      if (accelerator.should_stop()) return;  // the job's time is nearly over: saved, to resume later
    }
  }
  if (schedule.steps() < options.steps) {
    accelerator.print("stopped after step ", schedule.steps(), " as requested; the same command resumes from there");
    return;
  }
  if (options.trains_adapter) {
    hortator::save_adapter(accelerator, model, options.run_dir / "adapter");
    accelerator.print("saved in ", (options.run_dir / "adapter").string());
    return;
  }
  accelerator.save_model(model, options.run_dir / "model");
  accelerator.on_main_process([&] { models::save_config(*net, options.run_dir / "model"); });
  accelerator.print("saved in ", (options.run_dir / "model").string());
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (const auto options = parse(argc, argv)) train(*options);
  });
}
