#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "unit/accelerator/first_ranks.hpp"

/// Reproducible trainings on meshes of up to eight ranks, whose losses and weights have the bits of one rank.
namespace hortator::test::bits {

constexpr int shards = 8, rows = 2, vocabulary = 61, length = 8;

/// Whole numbers below the vocabulary, a row longer by one than what a model reads.
struct Tokens {
  std::size_t size() const { return 100; }
  Example<> get(std::int64_t i) const {
    const auto ids = (at::arange(length + 1, at::kLong) * (2 * i + 7) + i * i).remainder(vocabulary);
    return {ids, ids.narrow(0, 0, 1)};
  }
};

struct Images {
  std::size_t size() const { return 100; }
  Example<> get(std::int64_t i) const {
    const auto numbers = (at::arange(3 * 16 * 16, at::kLong) * (2 * i + 7) + i * i).remainder(61) - 30;
    return {(numbers.to(at::kFloat) / 32).view({3, 16, 16}), numbers.narrow(0, 0, 1).remainder(4)};
  }
};

inline at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& ids) {
  return at::cross_entropy_loss(logits.flatten(0, 1).to(at::kFloat), ids.narrow(1, 1, length).reshape({-1}));
}

inline std::shared_ptr<models::PretrainedModel> model_of(const char* config) {
  const OwnFolder folder("mesh-bits");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json") << config;
  auto net = models::from_config(folder.path);
  net->train();
  return net;
}

struct Llama {
  static auto net() {
    return model_of(
        R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 61, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1,
      "max_position_embeddings": 64, "tie_word_embeddings": true})");
  }
  static Tokens data() { return {}; }
  template <typename Model, typename Batch>
  static at::Tensor loss(Model& model, Batch& batch) {
    return token_loss(model(models::ModelInputs{.input_ids = batch.data.narrow(1, 0, length)}).logits, batch.data);
  }
};

/// The same, whose layers are computed again in backward.
struct LlamaRecomputed : Llama {
  static auto net() {
    auto recomputed = Llama::net();
    recomputed->set_recompute_layers(true);
    return recomputed;
  }
};

/// The same with sums and counts.
struct LlamaSums {
  static auto net() { return Llama::net(); }
  static Tokens data() { return {}; }
  template <typename Model, typename Batch>
  static auto loss(Model& model, Batch& batch) {
    const auto logits = model(models::ModelInputs{.input_ids = batch.data.narrow(1, 0, length)}).logits;
    const auto targets = batch.data.narrow(1, 1, length);
    const auto counted = targets.gt(9);  // other numbers in each shard
    const auto each =
        at::cross_entropy_loss(logits.flatten(0, 1), targets.reshape({-1}), {}, at::Reduction::None).view_as(targets);
    return std::pair((each * counted).sum(), counted.sum());
  }
};

struct Bert {
  static auto net() {
    return model_of(R"({"architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 61, "hidden_size": 16,
      "intermediate_size": 32, "num_hidden_layers": 8, "num_attention_heads": 2, "max_position_embeddings": 64,
      "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1})");
  }
  static Tokens data() { return {}; }
  template <typename Model, typename Batch>
  static at::Tensor loss(Model& model, Batch& batch) {
    return Llama::loss(model, batch);
  }
};

struct ResNet {
  static auto net() {
    return model_of(R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3,
      "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [4, 4], "layer_type": "basic",
      "id2label": {"0": "a", "1": "b", "2": "c", "3": "d"}})");
  }
  static Images data() { return {}; }
  template <typename Model, typename Batch>
  static at::Tensor loss(Model& model, Batch& batch) {
    return at::cross_entropy_loss(model(models::ModelInputs{.pixel_values = batch.data}).logits,
                                  batch.target.flatten());
  }
};

/// A layer of a module that a user has written. Its sum of three can be added in another order.
struct LayerImpl : torch::nn::Module {
  LayerImpl() {
    norm = register_module("norm", torch::nn::LayerNorm(std::vector<std::int64_t>{16}));
    up = register_module("up", torch::nn::Linear(16, 32));
    down = register_module("down", torch::nn::Linear(32, 16));
    drop = register_module("drop", torch::nn::Dropout(0.1));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto y = drop(down(at::gelu(up(norm(x)))));
    const auto z = at::tanh(y) * 0.3;
    return adds_last_first ? x + (y + z) : (x + y) + z;
  }
  static inline bool adds_last_first = false;
  torch::nn::LayerNorm norm = nullptr;
  torch::nn::Linear up = nullptr, down = nullptr;
  torch::nn::Dropout drop = nullptr;
};
TORCH_MODULE(Layer);

/// A user's own module, which names no layers.
struct StackImpl : torch::nn::Module {
  StackImpl() {
    embed = register_module("embed", torch::nn::Embedding(vocabulary, 16));
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < 8; ++i) layers->push_back(Layer());
    head = register_module("head", torch::nn::Linear(16, vocabulary));
  }
  at::Tensor forward(const at::Tensor& ids) {
    auto x = embed(ids);
    for (const auto& layer : *layers) x = layer->as<LayerImpl>()->forward(x);
    return head(x);
  }
  torch::nn::Embedding embed = nullptr;
  torch::nn::ModuleList layers = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Stack);

struct OwnModule {
  static auto net() { return Stack(); }
  static Tokens data() { return {}; }
  template <typename Model, typename Batch>
  static at::Tensor loss(Model& model, Batch& batch) {
    return token_loss(model(batch.data.narrow(1, 0, length)), batch.data);
  }
};

struct Course {
  std::vector<at::Tensor> losses = {};  ///< of the shards of each step
  std::vector<double> norms = {};
  StateDict weights = {};  ///< on the main process
};

enum class Loop { pipelined, usual };

struct Plan {
  AcceleratorOptions options = {};
  int steps = 6;
  Loop loop = Loop::pipelined;
  std::filesystem::path load = {}, save = {};
  std::optional<int> planted_at = {};  ///< the step in which the last rank adds in another order, from 0
};

inline at::Tensor run_backward(Accelerator& accelerator, const at::Tensor& loss) {
  accelerator.backward(loss);
  return loss.detach().to(at::kDouble).reshape({1});
}
inline at::Tensor run_backward(Accelerator& accelerator, const std::pair<at::Tensor, at::Tensor>& sum) {
  accelerator.backward(sum.first, sum.second);
  return at::stack({sum.first.detach().to(at::kDouble), sum.second.to(at::kDouble)}).view({1, 2});
}

template <typename Case>
Course train(Plan plan) {
  plan.options.reproducible = true;
  plan.options.virtual_shards = shards;
  plan.options.log_with = {};
  Accelerator accelerator(plan.options);
  set_seed(3);
  auto net = Case::net();
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-2));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adam, data_loader(Case::data(), {.batch_size = rows, .shuffle = true}));
  if (!plan.load.empty()) accelerator.load_state(plan.load);
  const auto loss_of = [](auto& one, auto& batch) { return Case::loss(one, batch); };
  Course course;
  std::vector<at::Tensor> parts;
  const auto is_over = [&] { return static_cast<int>(course.losses.size()) == plan.steps; };
  while (!is_over()) {
    for (auto& batch : loader) {
      const auto micro_step = accelerator.accumulate(model);
      LayerImpl::adds_last_first =
          plan.planted_at == static_cast<int>(course.losses.size()) && accelerator.is_last_process();
      if (plan.loop == Loop::pipelined) {
        accelerator.pipeline_step(model, batch, loss_of, {.losses = &parts.emplace_back()});
      } else {
        parts.push_back(run_backward(accelerator, loss_of(model, batch)));
      }
      LayerImpl::adds_last_first = false;
      const auto norm = accelerator.clip_grad_norm_(model.parameters(), 0.5);
      optimizer.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      course.norms.push_back(norm.template item<double>());
      const auto mine = at::cat(std::exchange(parts, {}));
      const auto all = accelerator.gather(mine);  // by rank, and in each by micro-step
      course.losses.push_back(all.view({all.size(0) / mine.size(0), accelerator.gradient_accumulation_steps(), -1})
                                  .transpose(0, 1)
                                  .reshape({-1}));
      if (is_over()) break;
    }
  }
  course.weights = accelerator.get_state_dict(model);
  if (!plan.save.empty()) accelerator.save_state(plan.save);
  return course;
}

/// How some ranks share a training.
struct Mesh {
  std::string name = {};
  int ranks = 1;
  int stage = 0;  ///< of ZeRO
  ParallelConfig parallel = {};
};

/// The training on the first ranks; empty on others. @collective over all
template <typename Case>
Course train_on(const Mesh& mesh, Plan plan) {
  const FirstRanks first(mesh.ranks);
  plan.options.zero.stage = mesh.stage;
  plan.options.parallel = mesh.parallel;
  plan.options.communicator = first.handle();
  return first.is_in() ? train<Case>(std::move(plan)) : Course();
}

/// The number of the first step whose losses or norms differ in some bit; nothing if all are equal.
inline std::optional<int> first_difference(const Course& one, const Course& other) {
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    if (step >= other.losses.size() || !at::equal(one.losses[step], other.losses[step]) ||
        one.norms[step] != other.norms[step])
      return static_cast<int>(step);
  }
  return {};
}

inline bool have_equal_weights(const Course& one, const Course& other) {
  if (one.weights.values().size() != other.weights.values().size()) return false;
  for (const auto& [name, value] : one.weights.values()) {
    if (!at::equal(std::get<at::Tensor>(value), other.weights.get<at::Tensor>(name))) return false;
  }
  return true;
}

}  // namespace hortator::test::bits
