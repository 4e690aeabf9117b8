// Captured steps beside other features, compared with the same steps run normally.
#include <hortator/models/exported.hpp>

#include "../accelerator/fixtures.hpp"
#include "../exported/stored_models.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::Net;

namespace {

constexpr CaptureOptions soon{.warm_up = 1};

at::Tensor data_of(const Accelerator& accelerator, int step) {
  return at::arange(24, at::TensorOptions(accelerator.device()).dtype(at::kFloat))
      .view({8, 3})
      .mul(0.3)
      .add(step)
      .sin();
}

std::vector<at::Tensor> on_host(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& one : tensors) copies.push_back(one.detach().cpu().clone());
  return copies;
}

bool are_near(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  const auto near = [](const at::Tensor& x, const at::Tensor& y) { return at::allclose(x, y, 1e-5, 1e-6); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), near);
}

/// One model, and averages of it.
struct AveragedRun {
  Accelerator accelerator{{.log_with = {}}};
  Net net = seeded();
  torch::optim::AdamW adamw{net->parameters(), 1e-2};
  Model<Net> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(adamw);
  Ema ema{accelerator, model, {.decay = 0.5}};

  static Net seeded() {
    set_seed(11);
    return Net();
  }
  at::Tensor step(const at::Tensor& x) {
    auto loss = model(x).square().mean();
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  }
  std::vector<at::Tensor> averages() {
    const auto scope = ema.use();
    return on_host(net->parameters());
  }
};

/// Two models that train each other, each with its own optimizer.
struct TwoModels {
  Accelerator accelerator{{.log_with = {}}};
  Net first = seeded(3);
  Net second = seeded(4, 0.3);
  torch::optim::AdamW adamw{first->parameters(), 1e-2};
  torch::optim::AdamW other{second->parameters(), 3e-2};
  Model<Net> model = accelerator.prepare(first);
  Model<Net> critic = accelerator.prepare(second);
  Optimizer optimizer = accelerator.prepare(adamw);
  Optimizer of_critic = accelerator.prepare(other);
  int runs = 0;
  CapturedStep captured = accelerator.capture([this](const at::Tensor& x) { return step(x); }, soon);

  static Net seeded(std::uint64_t seed, double dropout = 0) {
    set_seed(seed);
    return Net(dropout);
  }
  at::Tensor step(const at::Tensor& x) {
    ++runs;
    const auto made = model(x);
    auto loss = critic(at::cat({made, made * 2, x.narrow(1, 0, 1)}, 1)).square().mean() + made.square().mean();
    accelerator.backward(loss);
    optimizer.step();
    of_critic.step();
    optimizer.zero_grad();
    of_critic.zero_grad();
    return loss;
  }
};

enum class Change { none, freeze, thaw, evaluate, move };

void apply(Change change, Net& net) {
  switch (change) {
    case Change::none:
      return;
    case Change::freeze:
    case Change::thaw:
      for (auto& parameter : net->parameters()) parameter.requires_grad_(change == Change::thaw);
      return;
    case Change::evaluate:
      return net->eval();
    case Change::move:
      for (auto& parameter : net->parameters()) parameter.set_data(parameter.detach().clone());
  }
}

/// The parameters of both models after each change, each followed by six steps.
std::vector<at::Tensor> two_models_trace(bool captured, const std::vector<Change>& changes) {
  TwoModels run;
  std::vector<at::Tensor> trace;
  for (const auto change : changes) {
    apply(change, run.second);
    const int runs = run.runs;
    for (int i = 0; i < 6; ++i) {
      const auto x = data_of(run.accelerator, i);
      captured ? run.captured(x) : run.step(x);
    }
    if (captured) {
      CHECK(run.captured.is_recorded());
      CHECK(run.runs == runs + 2);  // one to warm up, one to record
    }
    for (const auto& net : {run.first, run.second}) {
      for (auto& one : on_host(net->parameters())) trace.push_back(one);
    }
  }
  return trace;
}

/// The losses of a model in a file, and the captured step's reason.
struct ExportedTrace {
  std::vector<double> losses;
  bool recorded = false;
  std::string why_not;
};

ExportedTrace exported_trace(const std::string& name, bool captured) {
  Accelerator accelerator({.log_with = {}});
  const auto net = exported_module(stored_models::file(name));
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  const auto input = stored_models::tensors(name).get("input_0").to(accelerator.device());
  const auto body = [&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
    auto loss = model(x)[0].square().mean();
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  };
  auto step = accelerator.capture(body, soon);
  ExportedTrace trace;
  for (int i = 0; i < 6; ++i) {
    const auto x = input * (i % 2 == 0 ? 1 : -1);
    trace.losses.push_back((captured ? step(x) : body(x)).template item<double>());
  }
  trace.recorded = step.is_recorded();
  trace.why_not = step.why_not();
  return trace;
}

}  // namespace

TEST_CASE("a captured step that averages weights runs as written, with the averages of the loop") {
  if (!test::has_gpu()) return;
  const auto averages = [](bool captured) {
    AveragedRun run;
    const auto body = [&](const at::Tensor& x) {
      auto loss = run.step(x);
      run.ema.update();
      return loss;
    };
    auto step = run.accelerator.capture(body, soon);
    for (int i = 0; i < 6; ++i) {
      const auto x = data_of(run.accelerator, i);
      captured ? step(x) : body(x);
    }
    CHECK(run.ema.updates() == 6);
    if (captured)
      CHECK_THAT(step.why_not(), ContainsSubstring("Ema::update() was called within a step that is recorded"));
    return run.averages();
  };
  CHECK(are_near(averages(true), averages(false)));
}

TEST_CASE("replays see averaged weights, and one that steps an optimizer meanwhile is refused") {
  if (!test::has_gpu()) return;
  const auto trained = [](bool captured) {
    AveragedRun run;
    auto step = run.accelerator.capture([&](const at::Tensor& x) { return run.step(x); }, soon);
    auto evaluate = run.accelerator.capture(
        [&](const at::Tensor& x) {
          const at::NoGradGuard no_grad;
          return run.model(x);
        },
        soon);
    const auto train = [&](int i) {
      const auto x = data_of(run.accelerator, i);
      captured ? step(x) : run.step(x);
    };
    for (int i = 0; i < 4; ++i) {
      train(i);
      run.ema.update();
    }
    const auto x = data_of(run.accelerator, 9);
    at::Tensor before;
    for (int i = 0; i < 3; ++i) before = evaluate(x);
    REQUIRE(evaluate.is_recorded());
    {
      const auto scope = run.ema.use();
      const at::NoGradGuard no_grad;
      const auto averaged = evaluate(x);
      CHECK(evaluate.is_recorded());
      CHECK(at::allclose(averaged, run.net->forward(x)));
      CHECK_FALSE(at::allclose(averaged, before));
    }
    CHECK(at::equal(evaluate(x), before));
    {
      const auto scope = run.ema.use();
      CHECK_THROWS_WITH(train(9), ContainsSubstring("optimizer.step() was called while a model has averaged weights"));
    }
    run.optimizer.zero_grad();
    for (int i = 4; i < 8; ++i) train(i);
    CHECK(step.is_recorded() == captured);
    run.ema.update();
    auto all = run.averages();
    for (auto& one : on_host(run.net->parameters())) all.push_back(one);
    return all;
  };
  CHECK(are_near(trained(true), trained(false)));
}

TEST_CASE("a captured step throws after free_memory, and another one records the models that are prepared next") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  const auto record = [&] {
    auto model = accelerator.prepare(net);
    auto optimizer = accelerator.prepare(sgd);
    auto step = accelerator.capture(
        [&accelerator, model, optimizer](const at::Tensor& x) mutable {
          accelerator.backward(model(x).square().mean());
          optimizer.step();
          optimizer.zero_grad();
        },
        soon);
    for (int i = 0; i < 4; ++i) step(data_of(accelerator, i));
    CHECK(step.is_recorded());
    return step;
  };
  auto first = record();
  accelerator.free_memory();
  const auto before = on_host(net->parameters());
  CHECK_THROWS_WITH(first(data_of(accelerator, 0)), ContainsSubstring("captured step was used after its Accelerator"));
  CHECK(are_near(on_host(net->parameters()), before));
  auto second = record();
  CHECK_FALSE(are_near(on_host(net->parameters()), before));
}

TEST_CASE("a captured step that loads a checkpoint or frees memory is not recorded") {
  if (!test::has_gpu()) return;
  for (const bool loads : {true, false}) {
    AveragedRun run;
    int runs = 0;
    auto step = run.accelerator.capture(
        [&](const at::Tensor& x) {
          run.step(x);
          if (++runs == 2) loads ? run.accelerator.load_state("none") : run.accelerator.free_memory();
        },
        soon);
    for (int i = 0; i < 2; ++i) step(data_of(run.accelerator, i));
    CHECK(runs == 3);
    CHECK_THAT(step.why_not(), ContainsSubstring("was called within a step that is recorded") &&
                                   ContainsSubstring(loads ? "load_state()" : "free_memory()"));
  }
}

TEST_CASE("a captured step of two models is recorded again after one of them was frozen, moved or evaluated") {
  if (!test::has_gpu()) return;
  const std::vector<Change> changes = {Change::none, Change::freeze, Change::thaw, Change::evaluate, Change::move};
  CHECK(are_near(two_models_trace(true, changes), two_models_trace(false, changes)));
}

TEST_CASE("a captured step of two optimizers replays with the learning rates of both schedules") {
  if (!test::has_gpu()) return;
  const auto trace = [](bool captured) {
    Accelerator accelerator({.log_with = {}});
    set_seed(11);
    Net net;
    torch::optim::AdamW adamw(net->hidden->parameters(), 1e-2);
    torch::optim::SGD sgd(net->out->parameters(), torch::optim::SGDOptions(1e-1).momentum(0.9));
    auto model = accelerator.prepare(net);
    auto [first, second, of_first, of_second] =
        accelerator.prepare(adamw, sgd, cosine_warmup(adamw, {.warmup_steps = 4, .total_steps = 20}),
                            linear_warmup(sgd, {.warmup_steps = 2, .total_steps = 12}));
    const auto body = [&, &first = first, &second = second, &of_first = of_first,
                       &of_second = of_second](const at::Tensor& x) {
      auto loss = model(x).square().mean();
      accelerator.backward(loss);
      first.step();
      second.step();
      of_first.step();
      of_second.step();
      first.zero_grad();
      second.zero_grad();
      return loss;
    };
    auto step = accelerator.capture(body, soon);
    std::vector<at::Tensor> all;
    for (int i = 0; i < 8; ++i) {
      const auto x = data_of(accelerator, i);
      all.push_back((captured ? step(x) : body(x)).detach().cpu());
      all.push_back(at::tensor({of_first.last_lr(), of_second.last_lr()}));
    }
    CHECK(step.is_recorded() == captured);
    for (auto& one : on_host(net->parameters())) all.push_back(one);
    return all;
  };
  CHECK(are_near(trace(true), trace(false)));
}

TEST_CASE("a captured step of an exported model replays, and one whose graph reads numbers of the device does not") {
  if (!test::has_gpu()) return;
  const auto replayed = exported_trace("mlp", true);
  CHECK(replayed.recorded);
  const auto read = exported_trace("condition", true);
  CHECK_FALSE(read.recorded);
  CHECK_THAT(read.why_not, StartsWith("it cannot be recorded"));
  for (const auto& [name, trace] : {std::pair("mlp", replayed), std::pair("condition", read)}) {
    const auto expected = exported_trace(name, false);
    for (std::size_t i = 0; i < trace.losses.size(); ++i)
      CHECK(trace.losses[i] == Approx(expected.losses[i]).epsilon(1e-5));
  }
}
