// The memory that a rank has for its part of a divided model. A separate program, because memory that other tests have
// freed would be reused.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <fstream>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/models/pretrained.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/interop/accelerate/python_dict.hpp"
#include "accelerator/training/memory_by_owner.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "formats/torch/pickle/value_writer.hpp"
#include "support/memory.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::mebibyte;

namespace {

constexpr std::int64_t width = 1024;
constexpr std::int64_t layer_bytes = width * width * 4;
constexpr int pairs = 16;
constexpr std::int64_t model_bytes = 2 * pairs * layer_bytes;  // 128 MiB

torch::nn::Sequential make_net() {
  at::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < 2 * pairs; ++i)
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

/// In each pair of layers, the first is divided by its outputs, and the second by its inputs.
AcceleratorOptions divided_options(int stage) {
  TensorPlan plan;
  for (int i = 0; i < 2 * pairs; ++i)
    plan.push_back({std::to_string(i), i % 2 == 0 ? TensorDivision::columns : TensorDivision::rows});
  return {.zero = {.stage = stage}, .parallel = {.tensor = 2, .plan = plan}};
}

/// Writes the state that Python's AdamW has for the parameters of make_net().
void write_adamw(const std::filesystem::path& file) {
  const formats::TensorSpec spec{.type = at::kFloat, .shape = {width, width}};
  accelerator::PythonDict state, group, both;
  formats::PickleValue::List numbers;
  for (std::int64_t i = 0; i < 2 * pairs; ++i) {
    accelerator::PythonDict moments;
    moments.put("step", 3.0);
    for (const auto* name : {"exp_avg", "exp_avg_sq"})
      moments.put(name, accelerator::tensor_value(text::concat(i, "/", name), spec));
    state.put(i, std::move(moments).value());
    numbers.push_back({.content = i});
  }
  group.put("lr", 0.5);
  group.put("params", std::move(numbers));
  both.put("state", std::move(state).value());
  both.put("param_groups", formats::PickleValue::List{std::move(group).value()});
  formats::write_pickle_value(file, std::move(both).value(), [](const std::string&) {
    return at::full({width, width}, 0.25);
  });
}

constexpr int expert_layers = 8;
const nn::MoEOptions of_layer{.width = 256, .inner = 1024, .experts = 8};
constexpr std::int64_t expert_layer_bytes = 8 * 3 * 1024 * 256 * 4;  // 24 MiB

torch::nn::Sequential make_experts() {
  at::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < expert_layers; ++i) net->push_back(nn::MoE(of_layer));
  return net;
}

/// What a rank has after prepare(), of the parts of two ranks: under ZeRO a shard of the parameters, and from stage 2
/// on one of gradients.
double shares(int stage) {
  const int shards = stage == 0 ? 1 : State().num_processes() / 2;
  return (stage < 2 ? 1.0 : 2.0) / shards;
}

bool is_about(std::uint64_t bytes, std::int64_t expected) {
  return std::abs(static_cast<double>(bytes) - static_cast<double>(expected)) <= 0.05 * static_cast<double>(expected);
}

}  // namespace

TEST_CASE("a rank never holds more than its part of a deferred model and a few layers: made, exported, loaded") {
  const State state;
  const test::Folder folder(state, "divided_room");
  constexpr auto few_layers = 8 * layer_bytes;
  {  // the pages of code that a first model touches do not count
    Accelerator accelerator(divided_options(0));
    accelerator.prepare(construct_deferred([] { return make_net(); }));
  }
  for (const int stage : {0, 1, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator(divided_options(stage));
    accelerator.wait_for_everyone();
    auto net = construct_deferred([] { return make_net(); });
    std::optional<Model<torch::nn::Sequential>> model;
    const auto made = test::extra_memory([&] { model.emplace(accelerator.prepare(net)); });
    INFO(made / test::mebibyte << " MiB");
    CHECK(static_cast<double>(made) < shares(stage) * model_bytes / 2 + few_layers / 2);
    const auto exported = test::extra_memory([&] { accelerator.save_model(*model, folder.path() / "whole"); });
    CHECK(exported < model_bytes / 2 + few_layers);  // what this rank writes
    const auto loaded =
        test::extra_memory([&] { accelerator.load_checkpoint_in_model(*model, folder.path() / "whole"); });
    CHECK(loaded < few_layers);
    {
      const auto expected = make_net();
      const auto summoned = accelerator.summon_full_parameters(*model);
      CHECK(test::same_parameters(*net, *expected));
    }
  }
}

TEST_CASE("a rank never holds more than its part of a checkpoint's weights and a few of them") {
  const State state;
  const test::Folder folder(state, "pretrained_room");
  const auto config = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1024,
    "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 16, "max_position_embeddings": 64, "tie_word_embeddings": true})";
  state.on_main_process([&] {
    std::filesystem::create_directories(folder.path());
    std::ofstream(folder.path() / "config.json") << config;
  });
  state.wait_for_everyone();
  std::int64_t bytes = 0;
  std::vector<double> expected;
  {
    at::manual_seed(2);
    const auto net = models::from_config(folder.path());
    for (const auto& parameter : net->parameters()) {
      bytes += static_cast<std::int64_t>(parameter.nbytes());
      expected.push_back(parameter.sum(at::kDouble).item<double>());
    }
    state.on_main_process([&] { models::save_pretrained(*net, folder.path() / "model"); });
    state.wait_for_everyone();
  }
  constexpr auto few_weights = 8 * 2 * layer_bytes;
  const auto load = [&] { return models::from_pretrained(folder.path() / "model"); };
  // Stage 3 has gradients of the same size as well.
  for (const auto& [options, held] :
       {std::pair(AcceleratorOptions{.zero = {.stage = 3}}, 2 * bytes / state.num_processes()),
        std::pair(AcceleratorOptions{.parallel = {.tensor = 2}}, bytes / 2),
        std::pair(AcceleratorOptions{.zero = {.stage = 1}, .parallel = {.tensor = 2}}, bytes / 2)}) {
    INFO("stage " << options.zero.stage.value_or(0) << ", tensor " << options.parallel.tensor.value_or(1));
    Accelerator accelerator(options);
    accelerator.wait_for_everyone();
    std::optional<Model<std::shared_ptr<models::PretrainedModel>>> model;
    const auto made = test::extra_memory([&] { model.emplace(accelerator.prepare(construct_deferred(load))); });
    INFO(made / test::mebibyte << " of " << bytes / test::mebibyte << " MiB");
    CHECK(made < held + few_weights);
    const auto summoned = accelerator.summon_full_parameters(*model);
    std::vector<double> found;
    for (const auto& parameter : model->module().parameters())
      found.push_back(parameter.sum(at::kDouble).item<double>());
    CHECK(found == expected);
  }
}

TEST_CASE("a rank never holds more than its part of deferred experts and those of two layers") {
  constexpr auto part = expert_layers * expert_layer_bytes / 2;
  for (const int stage : {0, 1, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator({.zero = {.stage = stage}, .parallel = {.experts = 2}});
    accelerator.wait_for_everyone();
    auto net = construct_deferred([] { return make_experts(); });
    std::optional<Model<torch::nn::Sequential>> model;
    const auto made = test::extra_memory([&] { model.emplace(accelerator.prepare(net)); });
    INFO(made / test::mebibyte << " MiB");
    CHECK(static_cast<double>(made) < shares(stage) * part + 2 * expert_layer_bytes);
    const auto expected = make_experts();
    const auto summoned = accelerator.summon_full_parameters(*model);
    CHECK(test::same_parameters(*net, *expected));
  }
}

TEST_CASE("a rank has 1/tensor of parameters, gradients and moments, and 1/shard of that under ZeRO") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Accelerator accelerator(divided_options(stage));
    auto net = make_net();
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(net, adam);
    accelerator.backward(model(at::ones({2, width})).square().mean());
    optimizer.step();
    const auto& training = accelerator::Training::of(accelerator);
    const auto memory = accelerator::memory_by_owner(training, at::kCPU);
    const auto shards = training.channels.mesh().shape().size(parallel::Axis::shard);
    CHECK(is_about(memory.parameters, model_bytes / 2));  // of these, shards lie in memory that the node's ranks share
    CHECK(is_about(memory.gradients, model_bytes / 2 / (stage >= 2 ? shards : 1)));
    CHECK(is_about(memory.optimizers, 2 * model_bytes / 2 / (stage >= 1 ? shards : 1)));
  }
}

TEST_CASE("a folder of Accelerate is loaded in the memory of a rank's part of the moments and a few layers") {
  const State state;
  const test::Folder folder(state, "python_room");
  {
    Accelerator accelerator;
    accelerator.save_model(accelerator.prepare(make_net()), folder.path());
    if (accelerator.is_main_process()) write_adamw(folder.path() / "optimizer.bin");
    accelerator.wait_for_everyone();
  }
  const auto ranks = state.num_processes();
  for (const auto& [options, parts] : {std::pair(AcceleratorOptions{.zero = {.stage = 3}}, ranks),
                                       std::pair(divided_options(0), 2), std::pair(divided_options(3), ranks)}) {
    INFO("stage " << *options.zero.stage << ", " << options.parallel.tensor.value_or(1) << " tensor ranks");
    Accelerator accelerator(options);
    auto net = make_net();
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    auto [model, optimizer] = accelerator.prepare(net, adam);
    const auto loaded = test::extra_memory([&] { accelerator.load_state(folder.path()); });
    CHECK(loaded < 2 * model_bytes / parts + 8 * layer_bytes);
    CHECK(adam.param_groups().front().options().get_lr() == 0.5);
    for (const auto& [parameter, own] : adam.state()) {
      CHECK(static_cast<torch::optim::AdamWParamState&>(*own).exp_avg().eq(0.25).all().item<bool>());
    }
    CHECK(!adam.state().empty());
  }
}
