// Exported models beside offloading, loads, fp16 and divided sequences.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/sgd.h>

#include <hortator/bigmodel/offload.hpp>
#include <hortator/models/exported.hpp>
#include <limits>
#include <optional>

#include "../accelerator/first_ranks.hpp"
#include "../accelerator/fixtures.hpp"
#include "../exported/changed_files.hpp"
#include "../exported/stored_models.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::copies_of;

namespace {

/// A run that trains an exported model.
class ExportedRun {
 public:
  ExportedRun(const std::string& name, AcceleratorOptions options,
              const std::function<Offload(std::shared_ptr<ExportedModule>&)>& page = {})
      : accelerator_(std::move(options)),
        net_(exported_module(stored_models::file(name))),
        adamw_(net_->parameters(), 1e-2),
        input_(stored_models::tensors(name).get("input_0")) {
    if (page) offload_.emplace(page(net_));
    model_.emplace(accelerator_.prepare(net_));
    optimizer_.emplace(accelerator_.prepare(adamw_));
  }

  void step(int number) {
    auto x = input_;
    if (x.is_floating_point()) x = x + 0.1 * (number + accelerator_.process_index());
    accelerator_.backward((*model_)(x)[0].square().mean());
    optimizer_->step();
    optimizer_->zero_grad();
  }
  /// Parameters, buffers and what the model computes in evaluation.
  std::vector<at::Tensor> state() {
    accelerator_.wait_for_everyone();
    auto all = copies_of(*net_);
    for (const auto& buffer : net_->buffers()) all.push_back(buffer.clone());
    const at::NoGradGuard no_grad;
    net_->eval();
    all.push_back((*model_)(input_)[0].clone());
    net_->train();
    accelerator_.wait_for_everyone();
    return all;
  }
  Accelerator& accelerator() { return accelerator_; }

 private:
  Accelerator accelerator_;
  std::shared_ptr<ExportedModule> net_;
  torch::optim::AdamW adamw_;
  at::Tensor input_;
  std::optional<Offload> offload_;
  std::optional<Model<std::shared_ptr<ExportedModule>>> model_;
  std::optional<Optimizer> optimizer_;
};

std::vector<at::Tensor> exported_course(const std::string& name, AcceleratorOptions options,
                                        const std::function<Offload(std::shared_ptr<ExportedModule>&)>& page = {}) {
  ExportedRun run(name, std::move(options), page);
  for (int i = 0; i < 3; ++i) run.step(i);
  return run.state();
}

/// The plain net with the weights of an exported model in Python's order.
template <typename Net>
Net with_weights_of(Net net, const torch::nn::Module& exported) {
  const at::NoGradGuard no_grad;
  const auto from = exported.parameters();
  auto to = net->parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from.at(i));
  return net;
}

/// Weights after steps in fp16, the third with an overflow, and the scale of the loss.
template <typename Net, typename Loss>
std::vector<at::Tensor> scaled_course(Net net, Precision precision, const Loss& loss_of) {
  Accelerator accelerator({.mixed_precision = precision, .grad_scaler = {.init_scale = 64}});
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  for (int i = 0; i < 4; ++i) {
    const bool overflows = i == 2 && precision == Precision::fp16;
    const auto loss = loss_of(model, i);
    accelerator.backward(overflows ? loss * std::numeric_limits<double>::infinity() : loss);
    optimizer.step();
    CHECK(optimizer.step_was_skipped() == overflows);
    optimizer.zero_grad();
  }
  auto all = copies_of(*net);
  if (precision == Precision::fp16) all.push_back(at::scalar_tensor(accelerator.loss_scale().scale));
  return all;
}

at::Tensor part_of(const at::Tensor& input, int step) { return (input + 0.2 * step).sin(); }

}  // namespace

TEST_CASE("an exported model in files computes and trains as in memory") {
  const test::Folder folder(State(), "exported_offload");
  const DiskOffloadOptions pages{.resident_bytes = 256, .page_bytes = 128};
  const auto on_disk = [&](std::shared_ptr<ExportedModule>& net) { return disk_offload(net, folder.path(), pages); };
  const auto on_host = [](std::shared_ptr<ExportedModule>& net) { return cpu_offload(net); };
  for (const auto* name : {"mlp", "attention", "tied"}) {
    INFO(name);
    const auto in_memory = exported_course(name, {});
    CHECK(are_equal(exported_course(name, {}, on_disk), in_memory));
    CHECK(are_equal(exported_course(name, {}, on_host), in_memory));
    const ZeroConfig in_files{
        .stage = 3, .offload_optimizer = folder.path(), .offload_parameters = folder.path(), .resident_bytes = 256};
    CHECK(are_equal(exported_course(name, {.zero = in_files}), exported_course(name, {.zero = {.stage = 3}})));
  }
}

TEST_CASE(
    "a run with an exported model loads its parameters and buffers after some updates, and continues bit by bit") {
  const test::Folder folder(State(), "exported_load");
  for (const auto* name : {"tied", "modes"}) {
    for (const int stage : {0, 3}) {
      INFO(name << ", stage " << stage);
      ExportedRun run(name,
                      {.zero = {.stage = stage}, .project = {.dir = folder.path() / (name + std::to_string(stage))}});
      for (int i = 0; i < 2; ++i) run.step(i);
      run.accelerator().save_state();
      run.accelerator().wait_for_checkpoint();
      const auto saved = run.state();
      for (int i = 2; i < 4; ++i) run.step(i);
      const auto expected = run.state();
      CHECK_FALSE(are_equal(saved, expected));
      run.accelerator().load_state();
      CHECK(are_equal(run.state(), saved));
      for (int i = 2; i < 4; ++i) run.step(i);
      CHECK(are_equal(run.state(), expected));
    }
  }
}

TEST_CASE("an exported model trains in fp16 as the same module of LibTorch, decomposed operators included") {
  const auto input = stored_models::tensors("mlp").get("input_0");
  const auto mlp = [] { return exported_module(stored_models::file("mlp")); };
  const auto of_exported = [&](auto& model, int step) { return model(part_of(input, step))[0].square().mean(); };
  const auto of_plain = [&](auto& model, int step) { return model(part_of(input, step)).square().mean(); };
  const auto plain = [] {
    return with_weights_of(torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::GELU(), torch::nn::Linear(8, 3)),
                           *exported_module(stored_models::file("mlp")));
  };
  const auto found = scaled_course(mlp(), Precision::fp16, of_exported);
  CHECK(are_equal(found, scaled_course(plain(), Precision::fp16, of_plain)));
  const auto in_fp32 = scaled_course(mlp(), Precision::no, of_exported);
  CHECK_FALSE(are_equal({found.front()}, {in_fp32.front()}));

  const auto decomposed = stored_models::tensors("changes_input_decomposed");
  const auto x = decomposed.get("input_0"), state = decomposed.get("input_1");
  const auto net = exported_module(stored_models::file("changes_input_decomposed"));
  const auto linear = with_weights_of(torch::nn::Linear(4, 4), *net);
  const auto of_decomposed = [&](auto& model, int step) {
    return model(part_of(x, step), state.clone())[0].square().mean();
  };
  const auto of_linear = [&](auto& model, int step) {
    const auto part = part_of(x, step);
    return (model(part * 2) + (state + part.sum(0))).square().mean();
  };
  CHECK(are_close(scaled_course(net, Precision::fp16, of_decomposed), scaled_course(linear, Precision::fp16, of_linear),
                  2e-3));
}

TEST_CASE("an exported model with attention trains over divided sequences as over whole ones") {
  const auto input = at::arange(2 * 8 * 8, at::kFloat).view({2, 8, 8}).mul(0.37).sin();
  const auto plain = exported_module(stored_models::file("attention"));
  torch::optim::SGD of_plain(plain->parameters(), 0.1);
  for (int i = 0; i < 4; ++i) {
    of_plain.zero_grad();
    plain->forward(part_of(input, i))[0].square().mean().backward();
    of_plain.step();
  }
  for (const auto form : {ContextAttention::gather, ContextAttention::ring}) {
    Accelerator accelerator({.parallel = {.context = State().num_processes(), .context_attention = form}});
    const auto net = exported_module(stored_models::file("attention"));
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    for (int i = 0; i < 4; ++i) {
      auto x = part_of(input, i);
      const auto divided = accelerator.maybe_context_parallel({{&x, 1}});
      accelerator.backward(model(x)[0].square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(are_close(copies_of(*net), copies_of(*plain), 1e-5));
  }
}

TEST_CASE("a graph that would see a rank's own tokens only is refused within maybe_context_parallel") {
  Accelerator accelerator({.parallel = {.context = State().num_processes()}});
  const auto net = exported_module(stored_models::changed(
      "mlp", stored_models::graph_record, "torch.ops.aten.gelu.default", "torch.ops.aten.triu.default"));
  auto model = accelerator.prepare(net);
  auto x = stored_models::tensors("mlp").get("input_0");
  CHECK_NOTHROW(model(x));
  const auto divided = accelerator.maybe_context_parallel({{&x, 0}});
  CHECK_THROWS_WITH(model(x), ContainsSubstring("An exported model was called within maybe_context_parallel") &&
                                  ContainsSubstring("torch.ops.aten.triu.default"));
  const auto counts = exported_module(stored_models::file("sizes"));
  CHECK_THROWS_WITH(counts->forward(stored_models::numbered(stored_models::tensors("sizes"), "input_")),
                    ContainsSubstring("torch.ops.aten.arange"));
}

TEST_CASE("an exported model trains along a pipeline as on one rank") {
  const auto losses_of = [](const std::string& name, const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    auto net = exported_module(stored_models::file(name));
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto input = stored_models::tensors(name).get("input_0");
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      const auto batch = std::pair(input.is_floating_point() ? input + 0.1 * i : input, input);
      const auto loss = accelerator.pipeline_step(
          model, batch, [](auto& model, auto& part) { return model(part.first)[0].square().mean(); },
          {.micro_batches = 2});
      losses.push_back(loss.template item<double>());
      optimizer.step();
      optimizer.zero_grad();
    }
    return losses;
  };
  for (const auto* name : {"mlp", "attention"}) {
    INFO(name);
    const auto along = losses_of(name, {.parallel = {.pipeline = 2}});
    const test::FirstRanks first(1);
    if (!first.is_in()) continue;
    const auto expected = losses_of(name, {.communicator = first.handle()});
    for (std::size_t i = 0; i < along.size(); ++i) CHECK(std::abs(along[i] - expected[i]) < 1e-5);
    CHECK(along.front() != along.back());
  }
}
