// Hugging Face Accelerate's nlp_example.py, line by line: fine-tunes BERT to tell whether two sentences mean the same
// (MRPC), or any other classification of texts or pairs in GLUE's TSV layout, JSON lines, Parquet or Arrow. The names
// are those of the Python program. In addition the loss of each step is written to loss.csv, the model is saved, and a
// run that was stopped resumes.
//
//     hortator launch -n 2 text_classification --model bert-base-cased --train msr_paraphrase_train.txt
//         --validation msr_paraphrase_test.txt
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <optional>

#include "../support/fine_tuning.hpp"
#include "../support/options.hpp"
#include "sentences.hpp"

namespace {

namespace models = hortator::models;
using text_classification::Join;
using text_classification::Sentences;

constexpr std::int64_t eval_batch_size = 32;

/// The settings of the Python program, and where its files are.
struct Config {
  double lr = 2e-5;
  std::int64_t num_epochs = 3;
  std::int64_t seed = 42;
  std::int64_t batch_size = 16;
  std::int64_t warmup_steps = 100;
  std::filesystem::path model, train, validation;
  hortator::LabelledTextsOptions columns;
  std::string mixed_precision;
  bool random_weights = false, in_order = false;
  example::FineTuningOptions run;
};

void training_function(const Config& config) {
  const auto precision = config.mixed_precision == "bf16" ? hortator::Precision::bf16 : hortator::Precision::no;
  hortator::Accelerator accelerator({.mixed_precision = precision,
                                     .cpu = config.run.cpu,
                                     .zero = {.stage = static_cast<int>(config.run.zero)},
                                     .parallel = config.run.axes.config(),
                                     .project = {.dir = config.run.run_dir}});
  hortator::set_seed(static_cast<std::uint64_t>(config.seed));

  const hortator::LabelledTexts train(config.train, config.columns), validation(config.validation, config.columns);
  const auto num_labels = std::max(train.num_classes(), validation.num_classes());
  const models::PretrainedOptions head{.num_labels = num_labels, .head = "ForSequenceClassification"};
  auto net =
      config.random_weights ? models::from_config(config.model, head) : models::from_pretrained(config.model, head);
  const models::Tokenizer tokenizer(config.model);
  const auto max_tokens = net->config().max_positions;
  const bool has_types = net->config().architecture.starts_with("Bert");
  const Join collate_fn(net->config().pad_token_id.value_or(0));

  auto train_loader = hortator::data_loader(
      Sentences(train, tokenizer, max_tokens),
      {.batch_size = config.batch_size, .shuffle = !config.in_order, .drop_last = false}, collate_fn);
  auto eval_loader =
      hortator::data_loader(Sentences(validation, tokenizer, max_tokens), {.batch_size = eval_batch_size}, collate_fn);

  torch::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(config.lr).weight_decay(0.01));
  auto linear_schedule = hortator::linear_warmup(
      adamw, {.warmup_steps = config.warmup_steps, .total_steps = train_loader.size() * config.num_epochs});

  auto [model, optimizer, train_dataloader, eval_dataloader, lr_scheduler] =
      accelerator.prepare(net, adamw, train_loader, eval_loader, linear_schedule);

  example::FineTuning run(accelerator, config.run);
  run.resume(train_dataloader);
  for (auto epoch = train_dataloader.epoch(); epoch < config.num_epochs; epoch = train_dataloader.epoch()) {
    model.train();
    for (auto& batch : accelerator.progress(train_dataloader, "epoch " + std::to_string(epoch))) {
      const auto divided = accelerator.maybe_context_parallel(batch.sequences());
      const auto outputs = model(batch.inputs(has_types));
      const auto loss = torch::nn::functional::cross_entropy(outputs.logits, batch.labels);
      accelerator.backward(loss);
      optimizer.step();
      lr_scheduler.step();
      optimizer.zero_grad();
      if (run.finish_step(loss, lr_scheduler.last_lr())) return;
    }

    model.eval();
    hortator::ClassificationCounts metric(num_labels);
    const at::NoGradGuard no_grad;
    for (auto& batch : eval_dataloader) {
      const auto divided = accelerator.maybe_context_parallel(batch.sequences());
      const auto outputs = model(batch.inputs(has_types));
      const auto predictions = outputs.logits.argmax(-1);
      const auto [all_predictions, references] = accelerator.gather_for_metrics(predictions, batch.labels);
      metric.add(all_predictions, references);
    }
    const bool is_binary = num_labels == 2;
    accelerator.print("epoch ", epoch, ": accuracy ", metric.accuracy(), is_binary ? ", f1 " : ", macro f1 ",
                      is_binary ? metric.f1() : metric.macro_f1(), ", matthews ", metric.matthews());
  }
  run.save(model, *net);
}

/// Returns nothing if --help was given.
std::optional<Config> parse_args(int argc, char** argv) {
  example::Options parser(argc, argv, "text_classification", "fine-tunes a model to classify texts or pairs of texts");
  Config config;
  config.model = parser.required("model", "folder with config.json, weights and tokenizer.json");
  config.train = parser.required("train", "TSV file or JSON lines to train on");
  config.validation = parser.required("validation", "TSV file or JSON lines to evaluate on");
  config.columns.text = parser.text("text-column", "", "the column of the text; GLUE's are known");
  config.columns.pair = parser.text("pair-column", "", "that of the second text");
  config.columns.label = parser.text("label-column", "", "that of the label");
  config.columns.classes = parser.texts("classes", "names of the classes, if labels are not numbers");
  config.columns.columns = parser.texts("columns", "names of the columns, if the TSV file has no header line");
  config.lr = parser.real("lr", config.lr, "peak learning rate");
  config.num_epochs = parser.number("num-epochs", config.num_epochs, "passes over the data");
  config.batch_size = parser.number("batch-size", config.batch_size, "texts of a rank in a batch");
  config.warmup_steps = parser.number("warmup-steps", config.warmup_steps, "steps in which the rate rises", 0);
  config.seed = parser.number("seed", config.seed, "seed of all random numbers", 0);
  config.mixed_precision = parser.choice("mixed-precision", {"no", "bf16"}, "in which the model computes");
  config.random_weights =
      parser.flag("random-weights", "trains from scratch; of the model's folder no weights are read");
  config.in_order = parser.flag("in-order", "keeps the order of the training file, without shuffling");
  config.run = example::FineTuningOptions::parse(parser);
  config.run.axes.context = parser.number("context", 1, "ranks among which the texts of a batch are divided");
  if (parser.help()) return {};
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (const auto config = parse_args(argc, argv)) training_function(*config);
  });
}
