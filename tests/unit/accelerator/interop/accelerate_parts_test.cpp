// Folders that Accelerate saved with DeepSpeed's ZeRO and with FSDP2 on two ranks, loaded at any number of ranks and
// ZeRO stage. tests/tools/deepspeed-folders.py and fsdp-folders.py make them, and beside each folder NAME the whole
// tensors and moments, and the losses of the next three steps.
#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/read/reader.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

const fs::path folders = ACCELERATE_FOLDERS;

template <typename Norm, bool HasFrozen>
struct NetImpl : torch::nn::Module {
  NetImpl() : norm(make_norm()) {
    register_module("fc1", fc1);
    register_module("norm", norm);
    register_module("fc2", fc2);
    if (!HasFrozen) return;
    register_module("frozen", frozen);
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  }
  static Norm make_norm() {
    if constexpr (std::is_same_v<Norm, torch::nn::LayerNorm>) {
      return Norm(torch::nn::LayerNormOptions({3}));
    } else {
      return Norm(3);
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto hidden = norm(fc1(x));
    return fc2(at::tanh(HasFrozen ? frozen(hidden) : hidden));
  }
  torch::nn::Linear fc1{torch::nn::LinearOptions(4, 3).bias(false)};
  Norm norm;
  torch::nn::Linear fc2{3, 1};
  torch::nn::Linear frozen{3, 3};
};

torch::optim::AdamW make_adamw(const auto& net) {
  auto first = net.fc1->parameters();
  for (const auto& parameter : net.norm->parameters()) first.push_back(parameter);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(first);
  groups.emplace_back(net.fc2->parameters());
  return torch::optim::AdamW(groups, torch::optim::AdamWOptions(0.5));  // replaced by the options in the folder
}

double warmup(std::int64_t step) {
  const auto at = static_cast<double>(step);
  return step < 3 ? at / 3 : std::max(0.0, (20 - at) / 17);
}

/// One step of this rank's rows of the batch; DeepSpeed clips gradients to a norm of 1 unless its options say
/// otherwise.
double mean_loss(Accelerator& accelerator, auto& model, auto& optimizer, auto& schedule, int step, bool clips) {
  const auto rows = 8 / accelerator.num_processes();
  const auto all = at::sin(at::arange(32, at::kFloat).view({8, 4}) + step);
  const auto x = all.narrow(0, accelerator.process_index() * rows, rows);
  auto loss = at::mse_loss(model(x), x.sum(1, true));
  accelerator.backward(loss);
  if (clips) accelerator.clip_grad_norm_(model.parameters(), 1.0);
  optimizer.step();
  schedule.step();
  optimizer.zero_grad();
  return accelerator.reduce(loss.detach(), Reduce::mean).template item<double>();
}

/// Everything is bitwise what Python had in memory: compared through a checkpoint, which holds whole tensors.
void check_everything(Accelerator& accelerator, const weights::WeightSource& python) {
  test::Folder saved(State(), "python_parts");
  accelerator.save_state(saved.path());
  const checkpoint::Reader reader(saved.path());
  std::size_t compared = 0;
  for (const auto& name : python.names()) {
    INFO(name);
    if (name.starts_with('@')) continue;
    const auto at = name.find('@');
    const auto here = at == std::string::npos
                          ? "models/0/" + name
                          : "optimizers/0/state/0/" + name.substr(0, at) + "/" + name.substr(at + 1);
    CHECK(at::equal(reader.read(here), python.tensor(name)));
    ++compared;
  }
  CHECK(compared > 10);
  CHECK(reader.values().get<double>("optimizers/0/groups/1/beta2") == 0.95);
}

template <typename Net>
void check_resumes(const std::string& name, int stage, bool is_deepspeed) {
  INFO(name << " at stage " << stage);
  Accelerator accelerator({.cpu = true, .zero = {.stage = stage}, .schedule_step = ScheduleStep::per_update});
  auto net = std::make_shared<Net>();
  auto adamw = make_adamw(*net);
  auto [model, optimizer, schedule] =
      accelerator.prepare(torch::nn::ModuleHolder<Net>(net), adamw, Schedule(adamw, warmup));
  accelerator.load_state(folders / name);
  const auto python = weights::open_weights(folders / (name + ".safetensors"));
  check_everything(accelerator, *python);
  CHECK(schedule.steps() == 5);
  const auto ranks = accelerator.num_processes();
  const bool has_python_ranks = ranks == 2;  // the batch norm of DeepSpeed's model depends on their number
  if (is_deepspeed ? !has_python_ranks : 8 % ranks != 0) return;
  const auto losses = python->tensor("@losses");
  for (int step = 5; step < 8; ++step) {
    const auto loss = mean_loss(accelerator, model, optimizer, schedule, step, is_deepspeed);
    CHECK(loss == Approx(losses[step - 5].item<double>()).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("a run that DeepSpeed's ZeRO sharded resumes: parameters and moments bitwise, the same next losses") {
  using Net = NetImpl<torch::nn::BatchNorm1d, true>;
  for (const auto* folder : {"deepspeed/stage1", "deepspeed/stage2", "deepspeed/stage3"}) {
    for (const int stage : {0, 1, 2, 3}) check_resumes<Net>(folder, stage, /*is_deepspeed=*/true);
  }
}

TEST_CASE("a run in bf16 of DeepSpeed resumes from its fp32 parameters") {
  using Net = NetImpl<torch::nn::LayerNorm, true>;
  Accelerator accelerator({.cpu = true, .schedule_step = ScheduleStep::per_update});
  for (const auto* folder : {"deepspeed/stage2bf16", "deepspeed/stage3bf16"}) {
    auto net = std::make_shared<Net>();
    load_checkpoint_in_model(*net, folders / folder);
    const auto python = weights::open_weights(folders / (std::string(folder) + ".safetensors"));
    for (const auto* name : {"fc1.weight", "norm.weight", "fc2.bias"})
      CHECK(at::equal(net->named_parameters()[name], python->tensor(name)));
    CHECK(at::equal(net->frozen->weight, python->tensor("frozen.weight").to(at::kFloat)));
  }
}

TEST_CASE("a run that FSDP2 sharded resumes: parameters and moments bitwise, the same next losses") {
  using Net = NetImpl<torch::nn::LayerNorm, false>;
  for (const int stage : {0, 1, 2, 3}) check_resumes<Net>("fsdp/sharded", stage, /*is_deepspeed=*/false);
}

TEST_CASE("fp32 copies of bf16 parameters are the folder's fp32 parameters, unrounded") {
  using Net = NetImpl<torch::nn::LayerNorm, false>;
  const auto python = weights::open_weights(folders / "fsdp/sharded.safetensors");
  const auto check = [&](int stage, int tensor, bool is_whole_state) {
    INFO("stage " << stage << ", " << tensor << " tensor ranks, " << (is_whole_state ? "whole state" : "weights"));
    AcceleratorOptions options{.cpu = true, .zero = {.stage = stage}, .schedule_step = ScheduleStep::per_update};
    if (tensor > 1) options.parallel = {.tensor = tensor, .plan = {{"fc1", TensorDivision::rows}}};
    Accelerator accelerator(options);
    auto net = std::make_shared<Net>();
    net->to(at::kBFloat16);
    auto adamw = make_adamw(*net);
    auto [model, optimizer, schedule] =
        accelerator.prepare(torch::nn::ModuleHolder<Net>(net), adamw, Schedule(adamw, warmup));
    if (is_whole_state) {
      accelerator.load_state(folders / "fsdp/sharded");
    } else {
      accelerator.load_checkpoint_in_model(model, folders / "fsdp/sharded");
    }
    test::Folder saved(State(), "python_masters");
    accelerator.save_state(saved.path());
    const checkpoint::Reader reader(saved.path());
    for (const auto* name : {"fc1.weight", "norm.weight", "fc2.weight", "fc2.bias"}) {
      INFO(name);
      const auto expected = python->tensor(name);
      const auto rounded = expected.to(at::kBFloat16);
      CHECK_FALSE(at::equal(rounded.to(at::kFloat), expected));
      CHECK(at::equal(reader.read(std::string("optimizers/0/state/0/") + name + "/master"), expected));
      CHECK(at::equal(reader.read(std::string("models/0/") + name), rounded));
    }
  };
  const bool has_pairs = State().num_processes() % 2 == 0;
  for (const int stage : {1, 2, 3}) {
    for (const int tensor : has_pairs ? std::vector<int>{1, 2} : std::vector<int>{1}) {
      for (const bool is_whole_state : {true, false}) check(stage, tensor, is_whole_state);
    }
  }
}

TEST_CASE("a folder of DeepSpeed from which one rank misses a file changes nothing on any rank") {
  using Net = NetImpl<torch::nn::BatchNorm1d, true>;
  test::Folder copy(State(), "deepspeed_torn");
  Accelerator accelerator({.cpu = true, .schedule_step = ScheduleStep::per_update});
  if (accelerator.is_main_process()) {
    fs::copy(folders / "deepspeed/stage2", copy.path(), fs::copy_options::recursive);
    fs::remove(copy.path() / "pytorch_model" / "zero_pp_rank_1_mp_rank_00_optim_states.pt");
  }
  accelerator.wait_for_everyone();
  auto net = std::make_shared<Net>();
  auto adamw = make_adamw(*net);
  auto [model, optimizer, schedule] =
      accelerator.prepare(torch::nn::ModuleHolder<Net>(net), adamw, Schedule(adamw, warmup));
  const auto before = net->fc1->weight.detach().clone();
  CHECK_THROWS_WITH(accelerator.load_state(accelerator.is_last_process() ? copy.path() : folders / "deepspeed/stage2"),
                    ContainsSubstring("was written by 2 ranks, the folder has the files of 1"));
  CHECK(at::equal(net->fc1->weight, before));
}
