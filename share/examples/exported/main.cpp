// Runs or trains a model from Python, without Python: torch.export.save (or share/python/export_for_hortator.py) writes
// the file, and this program computes its outputs and gradients, or trains it by SGD on any number of ranks.
//
//     exported --model net.pt2 --inputs in.safetensors --outputs out.safetensors --gradients gradients.safetensors
//
//     hortator launch -n 2 exported --model net.pt2 --inputs in.safetensors --target target.safetensors --steps 50
//
// Outputs and gradients are those of the model as the file has it. In training, ranks divide the batch where the model
// computes each row on its own and the export allows parts of the batch; otherwise every rank computes all of it.
#include <ATen/ATen.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <hortator/hortator.hpp>
#include <hortator/models/exported.hpp>
#include <hortator/models/pretrained.hpp>
#include <optional>

#include "../support/loss_log.hpp"
#include "options.hpp"
#include "tensors.hpp"

namespace {

using namespace exported_example;

/// Every rank computes; the first writes.
void write_outputs(const Config& config) {
  const hortator::State state({.cpu = config.cpu});
  const auto net = hortator::exported_module(config.model);
  net->to(state.device());
  if (config.evaluates) net->eval();
  hortator::set_seed(static_cast<std::uint64_t>(config.seed));
  auto inputs = read_inputs(config.inputs, *net);
  for (auto& input : inputs) input = input.to(state.device());
  const auto outputs = tensors_of(net->forward(inputs));
  const auto save = [&](const std::filesystem::path& file, const auto& tensors) {
    if (state.is_main_process()) std::filesystem::remove(file);
    if (state.is_main_process()) hortator::models::save_tensors(tensors, file);
  };
  if (!config.outputs.empty()) save(config.outputs, named_outputs(outputs));
  if (!config.gradients.empty()) save(config.gradients, gradients_of_sum(outputs, *net));
}

/// How the layers are divided among ranks. Where none can be, the ranks repeat the computation.
hortator::TensorPlan tensor_plan(const Config& config, const Tensors& inputs, const at::Tensor& target) {
  if (config.axes.tensor == 1) return {};
  const auto net = hortator::exported_module(config.model);  // calls may change its buffers
  const auto forward = [&] { return at::mse_loss(tensors_of(net->forward(copies(inputs))).at(0), target); };
  try {
    return hortator::derive_tensor_plan(*net, static_cast<int>(config.axes.tensor), forward);
  } catch (const hortator::UsageError& error) {
    std::fprintf(stderr, "--tensor: %s\n", error.what());
    return {{.pattern = net->named_parameters().front().key()}};
  }
}

void train(const Config& config) {
  const auto net = hortator::exported_module(config.model);
  auto inputs = read_inputs(config.inputs, *net);
  auto target = hortator::SafetensorsFile(config.target).get("target");
  auto parallel = config.axes.config();
  parallel.plan = tensor_plan(config, inputs, target);
  hortator::Accelerator accelerator({.cpu = config.cpu,
                                     .ddp = {.find_unused_parameters = true},  // of any model
                                     .zero = {.stage = static_cast<int>(config.zero)},
                                     .parallel = parallel,
                                     .project = {.dir = config.run_dir}});
  const auto replicas = accelerator.num_processes() / config.axes.tensor;
  if (replicas > 1 && divides_rows(config.model, inputs, target, replicas)) {
    for (auto& tensor : inputs) tensor = accelerator.split_between_processes(tensor);
    target = accelerator.split_between_processes(target);
  }
  for (auto& input : inputs) input = input.to(accelerator.device());
  target = target.to(accelerator.device());

  hortator::set_seed(static_cast<std::uint64_t>(config.seed));
  torch::optim::SGD sgd(net->parameters(), config.lr);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  std::optional<example::LossLog> log;
  accelerator.on_main_process([&] { log.emplace(config.loss_csv, 0); });
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    const auto loss = at::mse_loss(tensors_of(model(copies(inputs))).at(0), target);
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    const auto mean = accelerator.reduce(loss.detach(), hortator::Reduce::mean).item<double>();
    if (log) log->add(step, {mean});
  }
  accelerator.save_model(model, config.run_dir / "model");
  if (!config.save.empty()) net->write(accelerator, config.save);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const auto config = parse_options(argc, argv);
    if (!config) return;
    if (!config->outputs.empty() || !config->gradients.empty()) write_outputs(*config);
    if (config->steps > 0) train(*config);
  });
}
