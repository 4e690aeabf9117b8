// Hugging Face Accelerate's cv_example.py: fine-tunes ResNet-50, or any image model of hortator::models, on a folder of
// images with one subfolder for each class. A fifth of the images is held out. Random crops depend on
// (seed, epoch, image) only, so that they are the same on any number of ranks. The loss of each step is written to
// loss.csv, the model is saved, and a run that was stopped resumes.
//
//     hortator launch -n 2 image_classification --model resnet-50 --data pets
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>

#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <optional>

#include "../support/fine_tuning.hpp"
#include "../support/options.hpp"

namespace {

namespace vision = hortator::vision;
namespace models = hortator::models;

struct Config {
  std::filesystem::path model, data;
  double lr = 3e-2;
  std::int64_t num_epochs = 3, seed = 42, batch_size = 64, image_size = 224, channels = 3;
  double min_crop = 0.08;
  bool random_weights = false, whole_model = false, flip = false, jitter = false, sync_batch_norm = false;
  example::FineTuningOptions run;
};

/// Every fifth image, of each class, or the others.
std::vector<std::int64_t> part_of(std::int64_t size, bool is_held_out) {
  constexpr std::int64_t fifth = 5;
  std::vector<std::int64_t> part;
  for (std::int64_t i = 0; i < size; ++i) {
    if ((i % fifth == fifth - 1) == is_held_out) part.push_back(i);
  }
  return part;
}

vision::Transform normalise(const Config& config) {
  return config.channels == 3 ? vision::normalise_imagenet() : vision::normalise({0.5}, {0.5});
}

vision::Pipeline training_pipeline(const Config& config) {
  std::vector<vision::Transform> steps = {
      vision::random_resized_crop(config.image_size, {.scale = {config.min_crop, 1.0}})};
  if (config.flip) steps.push_back(vision::random_horizontal_flip());
  if (config.jitter)
    steps.push_back(vision::color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}));
  steps.push_back(normalise(config));
  return vision::Pipeline(steps, static_cast<std::uint64_t>(config.seed));
}

vision::Pipeline evaluation_pipeline(const Config& config) {
  return vision::Pipeline({vision::resize(config.image_size, config.image_size), normalise(config)});
}

std::shared_ptr<models::PretrainedModel> create_model(const Config& config, std::int64_t classes) {
  const models::PretrainedOptions options{.num_labels = classes};
  return config.random_weights ? models::from_config(config.model, options)
                               : models::from_pretrained(config.model, options);
}

bool is_head(const std::string& name) { return name.starts_with("classifier.") || name.starts_with("fc."); }

/// As in the Python program, only the head is trained, unless --whole-model is given.
void freeze_body(const models::PretrainedModel& net) {
  for (const auto& parameter : net.named_parameters()) parameter.value().set_requires_grad(is_head(parameter.key()));
}

/// Before prepare().
void synchronise_norms(models::PretrainedModel& net, const hortator::Accelerator& accelerator) {
  const auto layers = hortator::synchronize_batch_norms(net);
  if (layers == 0) throw hortator::UsageError({.what = "--sync-batch-norm: the model has no BatchNorm layers"});
  accelerator.print(layers, " BatchNorm layers normalise over the batches of all ranks");
}

void training_function(const Config& config) {
  hortator::Accelerator accelerator({.cpu = config.run.cpu,
                                     .zero = {.stage = static_cast<int>(config.run.zero)},
                                     .parallel = config.run.axes.config(),
                                     .project = {.dir = config.run.run_dir}});
  hortator::set_seed(static_cast<std::uint64_t>(config.seed));

  const hortator::ImageFolder folder(config.data, {.channels = static_cast<int>(config.channels)});
  const auto classes = static_cast<std::int64_t>(folder.classes().size());
  const auto augment = training_pipeline(config);
  const auto size = folder.size();
  auto training = hortator::data_loader(hortator::subset(vision::transformed(folder, augment), part_of(size, false)),
                                        {.batch_size = config.batch_size, .shuffle = true});
  auto held_out = hortator::data_loader(
      hortator::subset(vision::transformed(folder, evaluation_pipeline(config)), part_of(size, true)),
      {.batch_size = config.batch_size});

  auto net = create_model(config, classes);
  if (!config.whole_model) freeze_body(*net);
  if (config.sync_batch_norm) synchronise_norms(*net, accelerator);
  std::vector<at::Tensor> trained;
  for (const auto& parameter : net->parameters())
    if (parameter.requires_grad()) trained.push_back(parameter);
  torch::optim::Adam adam(trained, torch::optim::AdamOptions(config.lr / 25));
  auto one_cycle = hortator::one_cycle(adam, {.max_lr = config.lr, .total_steps = config.num_epochs * training.size()});

  auto [model, optimizer, train_dataloader, eval_dataloader, lr_scheduler] =
      accelerator.prepare(net, adam, training, held_out, one_cycle);

  example::FineTuning run(accelerator, config.run);
  run.resume(train_dataloader);
  for (auto epoch = train_dataloader.epoch(); epoch < config.num_epochs; epoch = train_dataloader.epoch()) {
    model.train();
    augment.set_epoch(epoch);
    for (auto& batch : accelerator.progress(train_dataloader, "epoch " + std::to_string(epoch))) {
      const auto outputs = model(models::ModelInputs{.pixel_values = batch.data});
      const auto loss = torch::nn::functional::cross_entropy(outputs.logits, batch.target);
      accelerator.backward(loss);
      optimizer.step();
      lr_scheduler.step();
      optimizer.zero_grad();
      if (run.finish_step(loss, lr_scheduler.last_lr())) return;
    }

    model.eval();
    hortator::ClassificationCounts metric(classes);
    const at::NoGradGuard no_grad;
    for (auto& batch : eval_dataloader) {
      const auto predictions = model(models::ModelInputs{.pixel_values = batch.data}).logits.argmax(-1);
      metric.add(predictions, batch.target, eval_dataloader.new_samples(accelerator.process_index()));
    }
    const auto total = accelerator.reduce(metric);
    accelerator.print("epoch ", epoch, ": ", 100 * total.accuracy(), " % of ", total.samples(), " images right");
  }
  run.save(model, *net);
}

/// Returns nothing if --help was given.
std::optional<Config> parse_args(int argc, char** argv) {
  example::Options parser(argc, argv, "image_classification", "fine-tunes a model to classify images");
  Config config;
  config.model = parser.required("model", "folder with config.json and weights");
  config.data = parser.required("data", "folder with one subfolder of PNG and JPEG files for each class");
  config.random_weights =
      parser.flag("random-weights", "trains from scratch; the model's folder needs only config.json");
  config.whole_model = parser.flag("whole-model", "trains all parameters, not only the head");
  config.sync_batch_norm =
      parser.flag("sync-batch-norm", "normalises over the batches of all ranks, for small batches");
  config.min_crop = parser.real("min-crop-area", config.min_crop, "least part of an image that a random crop takes");
  config.flip = parser.flag("flip", "also flips images at random");
  config.jitter = parser.flag("color-jitter", "also varies colours at random");
  config.lr = parser.real("lr", config.lr, "peak learning rate");
  config.num_epochs = parser.number("num-epochs", config.num_epochs, "passes over the images");
  config.batch_size = parser.number("batch-size", config.batch_size, "images of a rank in a batch");
  config.image_size = parser.number("image-size", config.image_size, "height and width of the model's images");
  config.channels = parser.number("channels", config.channels, "3: colours, 1: grey");
  config.seed = parser.number("seed", config.seed, "seed of all random numbers", 0);
  config.run = example::FineTuningOptions::parse(parser);
  if (parser.help()) return {};
  if (config.random_weights && !config.whole_model)
    throw hortator::UsageError(
        {.what = "--random-weights: expected --whole-model as well", .why = "only the head would be trained"});
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (const auto config = parse_args(argc, argv)) training_function(*config);
  });
}
