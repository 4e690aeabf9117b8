#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "accelerator/interop/accelerate/folder.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
namespace fs = std::filesystem;
using Json = nlohmann::json;

// The folders are written by tests/tools/accelerate-folders.py: Python trains five steps, saves, and trains three
// more, whose results are in expected.json.

namespace {

fs::path saved(const std::string& name) { return fs::path(ACCELERATE_FOLDERS) / name; }

Json resumed(const std::string& name) {
  std::ifstream in(saved("expected.json"));
  return Json::parse(in).at(name);
}

struct PythonNetImpl : torch::nn::Module {
  explicit PythonNetImpl(bool in_order = true) {
    if (in_order) register_module("fc1", fc1);
    register_module("norm", norm);
    register_module("fc2", fc2);
    if (!in_order) register_module("fc1", fc1);
  }
  at::Tensor forward(const at::Tensor& x) { return fc2(at::tanh(norm(fc1(x)))); }
  torch::nn::Linear fc1{torch::nn::LinearOptions(4, 3).bias(false)};
  torch::nn::BatchNorm1d norm{3};
  torch::nn::Linear fc2{3, 1};
};
TORCH_MODULE(PythonNet);

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

at::Tensor batch(int step) { return at::sin(at::arange(32, at::kFloat).view({8, 4}) + step); }

torch::optim::AdamW make_adamw(PythonNetImpl& net, bool in_order = true) {
  auto first = net.fc1->parameters();
  for (const auto& parameter : net.norm->parameters()) first.push_back(parameter);
  if (!in_order) std::reverse(first.begin(), first.end());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(first);
  groups.emplace_back(net.fc2->parameters());
  return torch::optim::AdamW(groups, torch::optim::AdamWOptions(0.5));  // replaced by the options in the folder
}

double warmup(std::int64_t step) {
  const auto at = static_cast<double>(step);
  return step < 3 ? at / 3 : std::max(0.0, (20 - at) / 17);
}

AcceleratorOptions python_options() { return {.cpu = true, .schedule_step = ScheduleStep::per_update}; }

template <typename Schedule>
void check_continues(Accelerator& accelerator, PythonNetImpl& net, auto& model, auto& optimizer, Schedule& schedule,
                     const Json& expected) {
  for (int step = 5; step < 8; ++step) {
    const auto x = batch(step);
    auto loss = at::mse_loss(model(x), x.sum(1, true));
    accelerator.backward(loss);
    optimizer.step();
    if constexpr (std::is_same_v<std::decay_t<Schedule>, ReduceOnPlateau>) {
      schedule.step(loss.template item<double>());
    } else {
      schedule.step();
    }
    optimizer.zero_grad();
    CHECK(loss.template item<double>() == Approx(expected["losses"][static_cast<std::size_t>(step - 5)].get<double>()));
  }
  const auto whole = accelerator.summon_full_parameters(model);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : net.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : net.named_buffers()) tensors[item.key()] = item.value();
  CHECK(tensors.size() == expected["tensors"].size());
  for (const auto& [name, values] : expected["tensors"].items()) {
    INFO(name);
    const auto numbers = values.template get<std::vector<float>>();
    CHECK(at::allclose(tensors.at(name).detach().flatten().to(at::kFloat), at::tensor(numbers), 1e-4, 1e-6));
  }
}

}  // namespace

TEST_CASE(
    "a run started in Python resumes in C++: weights, AdamW's groups and moments, warm-up, objects, random numbers") {
  Accelerator accelerator(python_options());
  set_seed(99);
  PythonNet net;
  auto adamw = make_adamw(*net);
  auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  const auto expected = resumed("adamw");
  accelerator.load_state(saved("adamw"));
  CHECK(progress.count == 5);
  CHECK(at::equal(progress.seen, at::full({2}, 2.0F)));
  CHECK(schedule.steps() == 5);
  if (accelerator.num_processes() == 1) {  // the number of ranks of the Python run
    CHECK(at::allclose(at::rand({4}), at::tensor(expected["random"].get<std::vector<float>>()), 0, 1e-6));
  }
  check_continues(accelerator, *net, model, optimizer, schedule, expected);
  for (std::size_t group = 0; group < 2; ++group)
    CHECK(adamw.param_groups()[group].options().get_lr() == Approx(expected["rates"][group].get<double>()));
  const auto& options = static_cast<torch::optim::AdamWOptions&>(adamw.param_groups()[0].options());
  CHECK(options.betas() == std::tuple(0.8, 0.95));
  CHECK(options.weight_decay() == 0.1);
}

TEST_CASE("a run started in Python resumes with a model that is divided among ranks, and sharded") {
  if (State().num_processes() != 2) return;
  for (const int stage : {0, 1, 3}) {
    INFO("stage " << stage);
    auto options = python_options();
    options.zero.stage = stage;
    options.parallel = {.tensor = 2, .plan = {{"fc1", TensorDivision::rows}}};
    Accelerator accelerator(options);
    PythonNet net;
    auto adamw = make_adamw(*net);
    auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
    Progress progress;
    accelerator.register_for_checkpointing("progress", progress);
    accelerator.load_state(saved("adamw"));
    CHECK(net->fc1->weight.sizes() == std::vector<std::int64_t>{3, 2});
    check_continues(accelerator, *net, model, optimizer, schedule, resumed("adamw"));
  }
}

TEST_CASE("a run started in Python resumes from a state dict: SGD with momentum, a schedule driven by a metric") {
  Accelerator accelerator(python_options());
  PythonNet net;
  torch::optim::SGD sgd(net->parameters(), 0.5);
  auto [model, optimizer, schedule] =
      accelerator.prepare(net, sgd, ReduceOnPlateau(sgd, {.factor = 0.5, .patience = 0, .cooldown = 2}));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  const auto expected = resumed("sgd");
  accelerator.load_state(saved("sgd"));
  check_continues(accelerator, *net, model, optimizer, schedule, expected);
  CHECK(sgd.param_groups()[0].options().get_lr() == Approx(expected["rates"][0].get<double>()));
}

TEST_CASE("an FSDP run resumes from its gathered or sharded state, whose optimizer identifies parameters by name") {
  const auto name = GENERATE(std::string("gathered"), std::string("sharded"));
  for (const bool in_order : {true, false}) {
    Accelerator accelerator(python_options());
    PythonNet net(in_order);
    auto adamw = make_adamw(*net, in_order);
    auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
    Progress progress;
    accelerator.register_for_checkpointing("progress", progress);
    accelerator.load_state(saved(name));
    check_continues(accelerator, *net, model, optimizer, schedule, resumed("gathered"));
  }
}

TEST_CASE("a folder of parts that cannot be put together is an error that names the file and what to do") {
  Accelerator accelerator(python_options());
  PythonNet net;
  auto model = accelerator.prepare(net);
  test::Folder folder(State(), "in_pieces");
  const auto expect = [&](const fs::path& piece, const std::string& text, const std::string& remedy) {
    const auto file = folder.path() / piece;
    if (accelerator.is_main_process()) {
      fs::create_directories(file.parent_path());
      std::ofstream(file) << "x";
    }
    accelerator.wait_for_everyone();
    const auto path = folder.path() / *piece.begin();
    for (const bool strict : {true, false}) {
      CHECK_THROWS_WITH(accelerator.load_state(path, {.strict = strict}),
                        ContainsSubstring(text) && ContainsSubstring(remedy));
    }
  };
  expect("killed/pytorch_model_fsdp_0/__0_0.distcp", "in pieces of FSDP: pytorch_model_fsdp_0", ".metadata is missing");
  expect("local/pytorch_model_fsdp_rank0.bin", "in pieces of FSDP: pytorch_model_fsdp_rank0.bin", "FULL_STATE_DICT");
}

TEST_CASE("Python's sequential and chained schedules resume as one function of the step") {
  const auto check = [](const std::string& name, double (*factor)(std::int64_t)) {
    Accelerator accelerator(python_options());
    PythonNet net;
    torch::optim::SGD sgd(net->parameters(), 0.5);
    auto [model, optimizer, schedule] = accelerator.prepare(net, sgd, Schedule(sgd, factor));
    Progress progress;
    accelerator.register_for_checkpointing("progress", progress);
    const auto expected = resumed(name);
    accelerator.load_state(saved(name));
    CHECK(schedule.steps() == 5);
    check_continues(accelerator, *net, model, optimizer, schedule, expected);
    CHECK(sgd.param_groups()[0].options().get_lr() == Approx(expected["rates"][0].get<double>()));
  };
  check("sequential", [](std::int64_t step) { return step < 3 ? warmup(step) : warmup(step - 2); });
  check("chained", [](std::int64_t step) { return (step < 7 ? 0.5 : 1) * std::pow(0.9, static_cast<double>(step)); });
}

TEST_CASE("a Python folder restores the loss scale") {
  Accelerator accelerator({.mixed_precision = Precision::fp16, .cpu = true});
  PythonNet net;
  auto adamw = make_adamw(*net);
  auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  accelerator.load_state(saved("adamw"));
  CHECK(accelerator.loss_scale() == LossScale{.scale = 1024, .growth_tracker = 7});
}

TEST_CASE("everything in a Python folder that does not fit is reported before anything is changed") {
  Accelerator accelerator(python_options());
  PythonNet net;
  const auto before = net->fc1->weight.detach().clone();
  auto expect = [&](const std::string& folder, const std::string& text) {
    CHECK_THROWS_WITH(accelerator.load_state(saved(folder)), ContainsSubstring(text));
    CHECK(at::equal(net->fc1->weight, before));
  };
  Progress progress;
  SECTION("objects that are not prepared") {
    auto adamw = make_adamw(*net);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    expect("adamw", "holds 1 schedules, prepared are 0");
  }
  SECTION("another optimizer") {
    auto first = net->fc1->parameters();
    for (const auto& parameter : net->norm->parameters()) first.push_back(parameter);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(first);
    groups.emplace_back(net->fc2->parameters());
    torch::optim::SGD sgd(groups, 0.1);
    auto [model, optimizer, schedule] = accelerator.prepare(net, sgd, Schedule(sgd, warmup));
    accelerator.register_for_checkpointing("progress", progress);
    expect("adamw", "AdamW");
  }
  SECTION("other groups") {
    torch::optim::AdamW adamw(net->parameters(), 0.1);
    auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
    accelerator.register_for_checkpointing("progress", progress);
    expect("adamw", "it has 2 groups of parameters, this optimizer has 1");
  }
  SECTION("another schedule") {
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer, schedule] = accelerator.prepare(net, sgd, Schedule(sgd, warmup));
    accelerator.register_for_checkpointing("progress", progress);
    expect("sgd", "has no 'base_lrs'");
  }
}

TEST_CASE("parameters in another order than Python's are refused, because moments have no names") {
  Accelerator accelerator(python_options());
  PythonNet net(false);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, schedule] = accelerator.prepare(net, sgd, ReduceOnPlateau(sgd));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  CHECK_THROWS_WITH(accelerator.load_state(saved("sgd")),
                    ContainsSubstring("here 'norm.weight' stands where Python's model has 'fc1.weight'"));
}

TEST_CASE("the order of parameters does not matter if Python's optimizer state has their names") {
  Accelerator accelerator(python_options());
  PythonNet net(false);
  torch::optim::SGD sgd(net->parameters(), 0.5);
  auto [model, optimizer, schedule] =
      accelerator.prepare(net, sgd, ReduceOnPlateau(sgd, {.factor = 0.5, .patience = 0, .cooldown = 2}));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  accelerator.load_state(saved("named"));
  check_continues(accelerator, *net, model, optimizer, schedule, resumed("named"));
}

TEST_CASE("without strict, the matching part of a Python folder is loaded") {
  Accelerator accelerator(python_options());
  PythonNet net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, schedule] = accelerator.prepare(net, sgd, Schedule(sgd, warmup));
  accelerator.load_state(saved("sgd"), {.strict = false});
  CHECK(sgd.param_groups()[0].options().get_lr() != Approx(0.1 * warmup(0)));
  CHECK(sgd.state().size() == net->parameters().size());
  CHECK(net->norm->num_batches_tracked.item<std::int64_t>() == 5);
}

TEST_CASE("a folder that Accelerate wrote is recognised") {
  using accelerator::AccelerateFolder;
  CHECK(AccelerateFolder::is_at(saved("adamw")));
  CHECK_FALSE(AccelerateFolder::is_at(saved("")));
  CHECK_FALSE(AccelerateFolder::is_at(saved("absent")));
  const AccelerateFolder folder(saved("adamw"));
  CHECK((folder.models() == 1 && folder.optimizers() == 1 && folder.schedules() == 1));
  CHECK((folder.processes() == 1 && folder.objects() == 1));
  CHECK(AccelerateFolder(saved("sgd")).processes() == 0);
  CHECK(AccelerateFolder::is_at(saved("gathered")));
  CHECK_FALSE(AccelerateFolder(saved("gathered")).pieces());
}

TEST_CASE("a folder of Accelerate sets the number of micro-steps") {
  auto options = python_options();
  options.gradient_accumulation_steps = 2;
  Accelerator accelerator(options);
  PythonNet net;
  auto adamw = make_adamw(*net);
  auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, warmup));
  Progress progress;
  accelerator.register_for_checkpointing("progress", progress);
  const auto is_update = [&, &model = model] {
    const auto scope = accelerator.accumulate(model);
    return accelerator.sync_gradients();
  };
  CHECK_FALSE(is_update());
  accelerator.load_state(saved("adamw"));  // after no micro-step
  CHECK_FALSE(is_update());
  CHECK(is_update());
}
