#include "options.hpp"

#include <hortator/error.hpp>
#include <string>

#include "../support/options.hpp"

namespace exported_example {
namespace {

void require(bool fits, const std::string& what, const std::string& hint) {
  if (!fits) throw hortator::UsageError({.what = what, .hint = hint});
}

void validate(const Config& config) {
  require(config.steps > 0 || !config.outputs.empty() || !config.gradients.empty(),
          "There is nothing to do: neither --outputs, --gradients nor --steps was given",
          "exported --help describes them");
  require(config.steps == 0 || !config.target.empty(), "--steps: training needs a target",
          "add --target FILE with a tensor named 'target'");
  require(config.zero <= 3, "--zero: expected 0 to 3, got " + std::to_string(config.zero), "");
}

}  // namespace

std::optional<Config> parse_options(int argc, char** argv) {
  example::Options options(argc, argv, "exported", "runs or trains a model that torch.export.save wrote");
  Config config;
  config.model = options.required("model", "the .pt2 file");
  config.inputs = options.required("inputs", "safetensors file with the inputs: input_0, input_1, ...");
  config.outputs = options.text("outputs", "", "safetensors file to write: output_0, output_1, ...");
  config.gradients = options.text("gradients", "", "safetensors file to write: gradients of the sum of all outputs");
  config.steps = options.number("steps", config.steps, "steps of SGD on the mean squared error of output_0", 0);
  config.lr = options.real("lr", config.lr, "learning rate");
  config.target = options.text("target", "", "safetensors file with the tensor 'target'");
  config.loss_csv =
      options.text("loss-csv", "", "file to write: the loss of each step; default: loss.csv in --run-dir");
  config.save = options.text("save", "", ".pt2 file to write: the trained model");
  config.evaluates = options.flag("eval", "computes outputs with the form for evaluation");
  config.zero = options.number("zero", config.zero, "stage of ZeRO: 1 shards moments, 2 gradients, 3 parameters", 0);
  config.axes = example::Axes::parse_tensor(options);
  config.seed = options.number("seed", config.seed, "seed of all random numbers", 0);
  config.cpu = options.flag("cpu", "stay on the CPU");
  config.run_dir = options.run_dir();
  if (options.help()) return {};
  if (config.loss_csv.empty()) config.loss_csv = config.run_dir / "loss.csv";
  validate(config);
  return config;
}

}  // namespace exported_example
