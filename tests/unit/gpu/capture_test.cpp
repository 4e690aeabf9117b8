// Compares captured steps with the same steps run normally.
#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::Net;

namespace {

struct Captured {
  bool captured = true;
  bool adamw = true;
  Precision precision = Precision::no;
  bool late_verdict = false;
  double dropout = 0.3;
  int steps = 12;
};

/// The losses, the learning rates, and whether the device replays the step at the end.
struct CaptureTrace {
  std::vector<double> losses;
  std::vector<double> rates;
  bool recorded = false;
};

CaptureTrace capture_trace(const Captured& how) {
  Accelerator accelerator({.mixed_precision = how.precision,
                           .grad_scaler = {.init_scale = 1024, .growth_interval = 4, .late_verdict = how.late_verdict},
                           .log_with = {}});
  set_seed(11);
  Net net(how.dropout);
  std::unique_ptr<torch::optim::Optimizer> own = std::make_unique<torch::optim::AdamW>(net->parameters(), 1e-2);
  if (!how.adamw)
    own = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  auto [model, optimizer, schedule] =
      accelerator.prepare(net, *own, cosine_warmup(*own, {.warmup_steps = 6, .total_steps = 40}));
  const auto body = [&, &model = model, &optimizer = optimizer, &schedule = schedule](const at::Tensor& x,
                                                                                      const at::Tensor& y) {
    auto loss = at::mse_loss(model(x), y);
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    return loss;
  };
  auto step = accelerator.capture(body);
  CaptureTrace trace;
  for (int i = 0; i < how.steps; ++i) {
    const auto x = at::full({8, 3}, 0.1 * i, accelerator.device());
    const auto y = x.sum(1, true);
    trace.rates.push_back(schedule.last_lr());
    trace.losses.push_back((how.captured ? step(x, y) : body(x, y)).template item<double>());
  }
  trace.recorded = step.is_recorded();
  return trace;
}

bool are_near(const CaptureTrace& a, const CaptureTrace& b, double tolerance) {
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    if (std::abs(a.losses[i] - b.losses[i]) > tolerance * std::max(1.0, std::abs(b.losses[i]))) return false;
  }
  return a.rates == b.rates;
}

}  // namespace

TEST_CASE("a captured step: losses equal those of normal steps, with warm-up and dropout") {
  if (!test::has_gpu()) return;
  for (const bool adamw : {true, false}) {
    for (const auto precision : {Precision::no, Precision::bf16}) {
      const auto captured = capture_trace({.adamw = adamw, .precision = precision});
      CHECK(captured.recorded);
      CHECK(are_near(captured, capture_trace({.captured = false, .adamw = adamw, .precision = precision}),
                     precision == Precision::no ? 1e-5 : 1e-3));
    }
  }
}

TEST_CASE("a captured step: fp16 reports why it is not recorded, and trains normally") {
  if (!test::has_gpu()) return;
  CHECK_FALSE(capture_trace({.precision = Precision::fp16}).recorded);
}

TEST_CASE("a captured step: with fp16 and late verdicts, scale and skipped steps equal those of normal steps") {
  if (!test::has_gpu()) return;
  for (const bool adamw : {true, false}) {
    const auto captured = capture_trace({.adamw = adamw, .precision = Precision::fp16, .late_verdict = true});
    CHECK(captured.recorded);
    CHECK(are_near(
        captured,
        capture_trace({.captured = false, .adamw = adamw, .precision = Precision::fp16, .late_verdict = true}), 1e-3));
  }
}

TEST_CASE("a captured step: an overflow is skipped, not counted, and reported a step later") {
  if (!test::has_gpu()) return;
  Accelerator accelerator(
      {.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024, .late_verdict = true}, .log_with = {}});
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  auto step = accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& factor) {
    auto loss = model(at::ones({4, 3}, factor.device())).sum() * factor;
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  });
  const auto usual = at::ones({}, accelerator.device());
  for (int i = 0; i < 6; ++i) step(usual);
  REQUIRE(step.is_recorded());
  const auto before = net->out->weight.detach().clone();
  step(usual * 1e38);
  CHECK(at::equal(before, net->out->weight));
  CHECK_FALSE(optimizer.step_was_skipped());
  step(usual);
  CHECK(optimizer.step_was_skipped());
  CHECK_FALSE(at::equal(before, net->out->weight));
  accelerator.end_training();
  CHECK_FALSE(optimizer.step_was_skipped());
  CHECK(accelerator.loss_scale().scale == 512);
  for (const auto& [parameter, state] : adamw.state())
    CHECK(static_cast<torch::optim::AdamWParamState&>(*state).step() == 7);
}

TEST_CASE("a captured step: inputs of another shape run normally, and the next ones are replayed again") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  int runs = 0;
  auto step = accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
    ++runs;
    accelerator.backward(model(x).sum());
    optimizer.step();
    optimizer.zero_grad();
  });
  const auto usual = at::ones({4, 3}, accelerator.device());
  for (int i = 0; i < 6; ++i) step(usual);
  CHECK(step.is_recorded());
  CHECK(runs == 4);
  const auto before = net->out->weight.detach().clone();
  step(usual.narrow(0, 0, 2));
  CHECK(runs == 5);
  CHECK_FALSE(at::equal(before, net->out->weight));
  step(usual);
  CHECK(runs == 5);
}

TEST_CASE("a captured step: loaded moments are used") {
  if (!test::has_gpu()) return;
  const auto folder = std::filesystem::absolute("folder_gpu_capture");
  std::filesystem::remove_all(folder);
  const auto train = [&](bool captured) {
    Accelerator accelerator({.log_with = {}, .project = {.dir = folder}});
    set_seed(5);
    Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto body = [&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
      auto loss = model(x).square().mean();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return loss;
    };
    auto step = accelerator.capture(body);
    double last = 0;
    for (int i = 0; i < 16; ++i) {
      if (i == 2) accelerator.save_state();
      if (i == 8) accelerator.load_state();
      const auto x = at::full({4, 3}, 0.2 * i, accelerator.device());
      last = (captured ? step(x) : body(x)).template item<double>();
    }
    return last;
  };
  const auto expected = train(false);
  CHECK(train(true) == Approx(expected).epsilon(1e-5));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a captured step: one that reads its numbers falls back, reports why, and trains") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  auto step = accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
    auto loss = model(x).sum();
    accelerator.backward(loss);
    if (loss.template item<float>() > 1e9) return loss;
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  });
  const auto x = at::ones({4, 3}, accelerator.device());
  double last = 1e30;
  for (int i = 0; i < 8; ++i) {
    const auto loss = step(x).item<double>();
    CHECK(loss < last);
    last = loss;
  }
  CHECK_FALSE(step.is_recorded());
  CHECK_THAT(step.why_not(), StartsWith("it cannot be recorded"));
  CHECK(step.why_not().find('\n') == std::string::npos);  // without the calls that led to LibTorch's error
}

TEST_CASE("a captured step: a hook that is added or removed ends the recording, and takes effect") {
  if (!test::has_gpu()) return;
  Accelerator accelerator;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.0);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  auto step = accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
    auto loss = model(x).square().mean();
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  });
  const auto x = at::ones({2, 3}, accelerator.device());
  const auto settled = [&] {
    for (int i = 0; i < 5; ++i) step(x);
    CHECK(step.is_recorded());
    return step(x).item<double>();
  };
  const double plain = settled();
  auto handle = model.add_hook(
      {.after_forward = [](torch::nn::Module&, std::vector<at::Tensor>& results) { results[0] = results[0] * 2; }});
  CHECK(step(x).item<double>() == Approx(4 * plain));
  CHECK(settled() == Approx(4 * plain));
  handle.remove();
  CHECK(step(x).item<double>() == Approx(plain));
  CHECK(settled() == Approx(plain));
}
