// `hortator checkpoint export --to accelerate`. Here load_state reads the folder back; accelerate_resumes.sh resumes it
// in Python.
#include <ATen/ATen.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <hortator/hortator.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "accelerator/interop/accelerate/python_dict.hpp"
#include "formats/torch/pickle/file.hpp"
#include "support/catch.hpp"
#include "unit/tools/run_checkpoint.hpp"

using namespace hortator;
using test::run_verb;
namespace fs = std::filesystem;

namespace {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout) : drop(dropout) {
    register_module("fc1", fc1);
    register_module("norm", norm);
    register_module("drop", drop);
    register_module("fc2", fc2);
  }
  at::Tensor forward(const at::Tensor& x) { return fc2(drop(at::tanh(norm(fc1(x))))); }
  torch::nn::Linear fc1{4, 3};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({3})};
  torch::nn::Dropout drop;
  torch::nn::Linear fc2{3, 1};
};
TORCH_MODULE(Net);

struct Progress {
  std::int64_t count = 0;
  at::Tensor seen = at::zeros({2});
  void save(StateWriter& out) const {
    out.put("count", count);
    out.put("nested/seen", seen);
  }
  void load(const StateReader& in) {
    count = in.get<std::int64_t>("count");
    seen = in.get<at::Tensor>("nested/seen");
  }
};

double warmup(std::int64_t step) { return step < 3 ? static_cast<double>(step + 1) / 3 : std::pow(0.9, step - 2); }

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(NetImpl&)>;

std::unique_ptr<torch::optim::Optimizer> adamw(NetImpl& net) {
  auto first = net.fc1->parameters();
  for (const auto& parameter : net.norm->parameters()) first.push_back(parameter);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  auto options = torch::optim::AdamWOptions(0.02);
  groups.emplace_back(first);
  groups.emplace_back(net.fc2->parameters(), std::make_unique<torch::optim::AdamWOptions>(options.weight_decay(0.1)));
  return std::make_unique<torch::optim::AdamW>(groups,
                                               torch::optim::AdamWOptions(0.01).betas({0.8, 0.95}).weight_decay(0.05));
}

/// A small run; all ranks have equal parts of the batch.
struct Run {
  explicit Run(const MakeOptimizer& make, double dropout = 0, int stage = 0)
      : accelerator({.cpu = true, .zero = {.stage = stage}, .schedule_step = ScheduleStep::per_update}),
        net(dropout),
        own(make(*net)),
        prepared(accelerator.prepare(net, *own, Schedule(*own, warmup))) {
    accelerator.register_for_checkpointing("progress", progress);
  }

  double step(int number) {
    auto& [model, optimizer, schedule] = prepared;
    const auto rows = 8 / accelerator.num_processes();
    const auto all = at::sin(at::arange(32, at::kFloat).view({8, 4}) + number);
    const auto x = all.narrow(0, accelerator.process_index() * rows, rows);
    auto loss = at::mse_loss(model(x), x.sum(1, true));
    accelerator.backward(loss);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    ++progress.count;
    progress.seen += 0.5;
    return accelerator.reduce(loss.detach(), Reduce::mean).item<double>();
  }
  std::vector<double> steps(int begin, int end) {
    std::vector<double> losses;
    for (int number = begin; number < end; ++number) losses.push_back(step(number));
    return losses;
  }

  Accelerator accelerator;
  Net net;
  std::unique_ptr<torch::optim::Optimizer> own;
  decltype(std::declval<Accelerator&>().prepare(std::declval<Net&>(), std::declval<torch::optim::Optimizer&>(),
                                                std::declval<Schedule>())) prepared;
  Progress progress;
};

void check_export(const std::string& name, const MakeOptimizer& make) {
  INFO(name);
  for (const auto* folder : {"export_from", "export_to"}) fs::remove_all(folder);
  std::vector<double> losses;
  at::Tensor drawn;
  {
    set_seed(3);
    Run run(make, 0.25);
    run.steps(0, 5);
    run.accelerator.save_state("export_from");
    losses = run.steps(5, 10);
    drawn = at::rand({4});
  }
  const auto exported = run_verb({"checkpoint", "export", "export_from", "--to", "accelerate", "export_to"});
  INFO(exported.output);
  REQUIRE(exported.code == 0);
  CHECK_THAT(exported.output, ContainsSubstring("export_to: 1 model, 1 optimizer and the random numbers of 1 rank"));
  for (const auto* file :
       {"model.safetensors", "optimizer.bin", "scheduler.bin", "random_states_0.pkl", "custom_checkpoint_0.pkl"})
    CHECK(fs::exists(fs::path("export_to") / file));
  set_seed(99);
  Run run(make, 0.25);
  run.accelerator.load_state("export_to");
  CHECK(run.progress.count == 5);
  CHECK(at::equal(run.progress.seen, at::full({2}, 2.5F)));
  CHECK(run.steps(5, 10) == losses);
  CHECK(at::equal(at::rand({4}), drawn));
}

template <typename Optimizer, typename Options>
MakeOptimizer one_group(const Options& options) {
  return [options](NetImpl& net) { return std::make_unique<Optimizer>(net.parameters(), options); };
}

}  // namespace

TEST_CASE("a checkpoint becomes a folder of Accelerate: the run that resumes from it has the same losses, bit by bit") {
  using namespace torch::optim;
  check_export("AdamW", adamw);
  check_export("Adam", one_group<Adam>(AdamOptions(0.01).amsgrad(true)));
  check_export("SGD", one_group<SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true)));
  check_export("SGD without momentum", one_group<SGD>(SGDOptions(0.05)));
  check_export("RMSprop", one_group<RMSprop>(RMSpropOptions(0.01).momentum(0.5).centered(true)));
  check_export("Adagrad", one_group<Adagrad>(AdagradOptions(0.05)));
}

TEST_CASE("Python's options and numbers of parameters are in the exported optimizer") {
  for (const auto* folder : {"export_from", "export_to"}) fs::remove_all(folder);
  Run run(adamw);
  run.steps(0, 2);
  run.accelerator.save_state("export_from");
  REQUIRE(run_verb({"checkpoint", "export", "export_from", "--to", "accelerate", "export_to"}).code == 0);
  const formats::PickleFile file("export_to/optimizer.bin");
  const auto& groups = std::get<formats::PickleValue::List>(file.value().find("param_groups")->content);
  REQUIRE(groups.size() == 2);
  CHECK(std::get<bool>(groups[0].find("decoupled_weight_decay")->content));
  CHECK(std::get<double>(groups[0].find("initial_lr")->content) == 0.01);
  const auto& numbers = std::get<formats::PickleValue::List>(groups[1].find("params")->content);
  REQUIRE(numbers.size() == 2);
  CHECK(std::get<std::int64_t>(numbers[0].content) == 4);  // fc1 and norm have two each
  CHECK(file.spec("state.4.exp_avg").shape == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("the exported scaler has the run's factors and interval") {
  for (const auto* folder : {"export_from", "export_to"}) fs::remove_all(folder);
  Accelerator accelerator(
      {.mixed_precision = Precision::fp16,
       .grad_scaler = {.init_scale = 512, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 30},
       .cpu = true});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  accelerator.save_state("export_from");
  REQUIRE(run_verb({"checkpoint", "export", "export_from", "--to", "accelerate", "export_to"}).code == 0);
  const formats::PickleFile file("export_to/scaler.pt");
  const auto real = [&](const char* name) { return std::get<double>(file.value().find(name)->content); };
  CHECK(real("scale") == 512);
  CHECK(real("growth_factor") == 4);
  CHECK(real("backoff_factor") == 0.25);
  CHECK(std::get<std::int64_t>(file.value().find("growth_interval")->content) == 30);
}

TEST_CASE("a name that stands for a value and for a dict is refused, since Python's dict would lose one") {
  using formats::PickleValue;
  accelerator::PythonDict dict;
  dict.put_at("count/first", PickleValue{.content = std::int64_t{1}});
  dict.put_at("count/second", PickleValue{.content = std::int64_t{2}});
  CHECK_THROWS_WITH(dict.put_at("count", PickleValue{}), ContainsSubstring("has the name 'count' twice"));
  dict.put_at("seen", PickleValue{});
  CHECK_THROWS_WITH(dict.put_at("seen/first", PickleValue{}), ContainsSubstring("has the name 'seen' twice"));
}

TEST_CASE("an export for Accelerate that cannot be done is refused, and leaves nothing") {
  for (const auto* folder : {"export_from", "export_to"}) fs::remove_all(folder);
  Run run(adamw);
  run.steps(0, 1);
  run.accelerator.save_state("export_from");
  CHECK_THAT(run_verb({"checkpoint", "export", "export_from", "--to", "deepspeed", "export_to"}).output,
             ContainsSubstring("--to: expected accelerate, got 'deepspeed'"));
  CHECK_THAT(
      run_verb({"checkpoint", "export", "export_from", "--to", "accelerate", "export_to", "--model", "1"}).output,
      ContainsSubstring("--model was given with --to accelerate"));
  REQUIRE(run_verb({"checkpoint", "export", "export_from", "export.safetensors"}).code == 0);
  CHECK_THAT(run_verb({"checkpoint", "export", "export.safetensors", "--to", "accelerate", "export_to"}).output,
             ContainsSubstring("is not a checkpoint of save_state"));
  CHECK_FALSE(fs::exists("export_to"));
  fs::create_directory("export_to");
  CHECK_THAT(run_verb({"checkpoint", "export", "export_from", "--to", "accelerate", "export_to"}).output,
             ContainsSubstring("exists") && ContainsSubstring("name a new folder"));
  CHECK(fs::is_empty("export_to"));
}

// accelerate_resumes.sh: one rank draws random numbers in its model; two ranks have ZeRO 3.
TEST_CASE("a run for Python to resume", "[.for_accelerate]") {
  const auto ranks = State().num_processes();
  set_seed(5);
  Run run(adamw, ranks == 1 ? 0.25 : 0, ranks == 1 ? 0 : 3);
  run.steps(0, 5);
  run.accelerator.save_state("trained_" + std::to_string(ranks));
  nlohmann::json expected = {{"losses", run.steps(5, 10)}, {"dropout", ranks == 1 ? 0.25 : 0}};
  if (run.accelerator.is_main_process()) std::ofstream("expected_" + std::to_string(ranks) + ".json") << expected;
}
