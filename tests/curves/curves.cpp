// curves check FILE: whether some trainings have the losses that FILE has for machines of this kind, bit by bit, on any
// number of ranks. curves renew FILE REASON: stores them. Exit codes: 0 yes, 1 no, 2 wrong usage, 77 a kind of machine
// that FILE does not have.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <iostream>
#include <map>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "curve_file.hpp"
#include "tools/doctor/bits.hpp"

namespace {

using namespace hortator;
using Losses = std::vector<double>;

constexpr int shards = 4;  // of each step, on 1, 2 or 4 ranks
constexpr int steps = 8;

/// Row i: numbers from integers, and a target.
struct Rows {
  std::vector<std::int64_t> sizes;
  std::size_t size() const { return 1000; }
  Example<> get(std::int64_t i) const {
    std::int64_t count = 1;
    for (const auto size : sizes) count *= size;
    const auto numbers = ((at::arange(count, at::kLong) * (2 * i + 7) + i * i) % 61 - 30).to(at::kFloat) / 32;
    return {numbers.view(sizes), numbers.abs().sum().sin().view({1})};
  }
};

struct ImagesImpl : torch::nn::Module {
  ImagesImpl() {
    edges = register_module("edges", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    drop = register_module("drop", torch::nn::Dropout(0.2));
    out = register_module("out", torch::nn::Linear(8 * 6 * 6, 1));
  }
  at::Tensor forward(const at::Tensor& x) { return out(drop(at::relu(norm(edges(x))).flatten(1))); }
  torch::nn::Conv2d edges{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Images);

/// Trains for some steps; the loss of a step is the mean of those of its shards, in their order.
template <typename Model, typename Loader, typename LossOf>
Losses train(Accelerator& accelerator, Model& model, Optimizer& optimizer, Loader& loader, const LossOf& loss_of) {
  Losses losses;
  std::vector<at::Tensor> mine;
  for (auto& batch : loader) {
    const auto loss = loss_of(model, batch);
    mine.push_back(loss.detach().to(at::kDouble).view({1}));
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    losses.push_back(accelerator.gather(at::cat(std::exchange(mine, {}))).mean().template item<double>());
    if (losses.size() == steps) break;
  }
  return losses;
}

AcceleratorOptions usual(AcceleratorOptions options) {
  options.cpu = true;
  options.reproducible = true;
  options.virtual_shards = shards;
  options.log_with = {};
  return options;
}

Losses train_images(AcceleratorOptions options) {
  Accelerator accelerator(usual(std::move(options)));
  set_seed(3);
  Images net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, sgd, data_loader(Rows{{3, 8, 8}}, {.batch_size = 4, .shuffle = true}));
  return train(accelerator, model, optimizer, loader,
               [](auto& one, const auto& batch) { return at::mse_loss(one(batch.data).to(at::kFloat), batch.target); });
}

Losses train_transformer(AcceleratorOptions options) {
  const auto folder = std::filesystem::temp_directory_path() / text::concat("hortator-curves-", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 61, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "max_position_embeddings": 64, "tie_word_embeddings": true})";
  Accelerator accelerator(usual(std::move(options)));
  set_seed(3);
  auto net = models::from_config(folder);
  std::filesystem::remove_all(folder);
  net->train();
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adamw, data_loader(Rows{{17}}, {.batch_size = 2, .shuffle = true}));
  return train(accelerator, model, optimizer, loader, [](auto& one, const auto& batch) {
    const auto tokens = (batch.data * 32 + 30).to(at::kLong);
    const auto outputs = one(models::ModelInputs{.input_ids = tokens.narrow(1, 0, 16)});
    return at::cross_entropy_loss(outputs.logits.flatten(0, 1).to(at::kFloat), tokens.narrow(1, 1, 16).reshape({-1}));
  });
}

std::map<std::string, Losses> compute() {
  return {{"images, SGD with momentum, fp32", train_images({})},
          {"images, SGD with momentum, bf16", train_images({.mixed_precision = Precision::bf16})},
          {"transformer, AdamW, fp32", train_transformer({})},
          {"transformer, AdamW, bf16", train_transformer({.mixed_precision = Precision::bf16})},
          {"transformer, AdamW, fp32, ZeRO 3", train_transformer({.zero = {.stage = 3}})}};
}

std::string kind_of_machine() {
  return text::concat(tools::doctor::hash_of(tools::doctor::probe_kernels()), " ", TORCH_VERSION);
}

std::string content_of(const std::filesystem::path& file) {
  const auto text = core::read_whole(file);
  if (!text) throw UsageError({.what = text::concat(file.string(), " cannot be read"), .hint = "name curves.tsv"});
  return *text;
}

int check(const State& state, const std::filesystem::path& file) {
  const auto stored = curves::parse(content_of(file), file);
  const auto kind = kind_of_machine();
  if (std::ranges::none_of(stored, [&](const auto& one) { return one.kind == kind; })) {
    state.print("no curves of the kind ", kind, " (", tools::doctor::processor_features(), ")");
    return 77;
  }
  const auto found = curves::differences(stored, kind, compute());
  for (const auto& one : found) state.print(one);
  return found.empty() ? 0 : 1;
}

int renew(const State& state, const std::filesystem::path& file, const std::string& reason) {
  if (reason.empty() || reason.find_first_of("\t\n") != std::string::npos)
    throw UsageError({.what = "renew: expected a reason in one line", .hint = "curves renew FILE 'why bits change'"});
  const auto stored = curves::parse(content_of(file), file);
  const auto kind = kind_of_machine();
  const auto computed = compute();
  for (const auto& one : curves::differences(stored, kind, computed)) state.print(one);
  const curves::Curve common{
      .kind = kind, .features = tools::doctor::processor_features(), .configuration = "", .reason = reason};
  const auto text = to_text(curves::renewed(stored, common, computed));
  if (state.is_main_process() && !core::write_whole(file, file.string() + ".new", text))
    throw UsageError({.what = text::concat(file.string(), " cannot be written"), .hint = "name a file that can"});
  return 0;
}

int run_command(const std::vector<std::string>& arguments) {
  const State state({.cpu = true});
  if (arguments.size() == 2 && arguments[0] == "check") return check(state, arguments[1]);
  if (arguments.size() == 3 && arguments[0] == "renew") return renew(state, arguments[1], arguments[2]);
  throw UsageError({.what = "expected: curves check FILE, or curves renew FILE REASON", .hint = "see curves.cpp"});
}

}  // namespace

int main(int argc, char** argv) {
  int code = 0;
  const int failed =
      hortator::run(argc, argv, [&] { code = run_command(std::vector<std::string>(argv + 1, argv + argc)); });
  return failed != 0 ? failed : code;
}
