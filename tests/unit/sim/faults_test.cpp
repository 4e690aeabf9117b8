// Faults that only a late device with reused memory shows: each of these tests fails with its fault in the product.
#include <torch/nn/modules/container/sequential.h>
#include <unistd.h>

#include <cmath>
#include <hortator/bigmodel/offload.hpp>
#include <thread>

#include "../accelerator/fixtures.hpp"
#include "machine/device/stream.hpp"
#include "sim_fixture.hpp"
#include "support/written.hpp"

using namespace hortator;
using test::Net;

namespace {

at::Tensor some_rows(const Accelerator& accelerator, double value) {
  return at::full({8, 3}, value, accelerator.device());
}

std::vector<double> losses_of_steps(bool captured, bool removes_gradients) {
  Accelerator accelerator({.log_with = {}});
  set_seed(11);
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, schedule] =
      accelerator.prepare(net, adamw, cosine_warmup(adamw, {.warmup_steps = 6, .total_steps = 40}));
  // Gradients are zeroed in place, so that the recording writes to those that are there.
  const auto body = [&, &model = model, &optimizer = optimizer, &schedule = schedule](const at::Tensor& x) {
    for (const auto& parameter : net->parameters())
      if (parameter.grad().defined()) parameter.mutable_grad().zero_();
    auto loss = model(x).square().mean();
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    schedule.step();
    return loss;
  };
  auto step = accelerator.capture(body);
  std::vector<double> losses;
  for (int i = 0; i < 12; ++i) {
    const auto x = some_rows(accelerator, 0.1 * i);
    losses.push_back((captured ? step(x) : body(x)).template item<double>());
    if (removes_gradients && i == 7)
      for (const auto& parameter : net->parameters()) parameter.mutable_grad().reset();
  }
  CHECK(step.is_recorded() == captured);
  return losses;
}

// The recorded step is forward and backward only: the optimizer, which would keep the gradients' memory, steps outside.
std::vector<double> losses_of_backwards(bool captured) {
  Accelerator accelerator({.log_with = {}});
  set_seed(11);
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto body = [&, &model = model](const at::Tensor& x) {
    for (const auto& parameter : net->parameters())
      if (parameter.grad().defined()) parameter.mutable_grad().zero_();
    auto loss = model(x).square().mean();
    accelerator.backward(loss);
    return loss;
  };
  auto step = accelerator.capture(body);
  std::vector<double> losses;
  for (int i = 0; i < 12; ++i) {
    const auto x = some_rows(accelerator, 0.1 * i);
    losses.push_back((captured ? step(x) : body(x)).template item<double>());
    optimizer.step();
    machine::wait_until_idle(accelerator.device());  // gradients belong to the stream on which the step runs
    if (i == 7)
      for (const auto& parameter : net->parameters()) parameter.mutable_grad().reset();
  }
  CHECK(step.is_recorded() == captured);
  return losses;
}

// A recorded step has its learning rate as a float on the device, one that runs as written as a double on the host.
void check_close(const std::vector<double>& recorded, const std::vector<double>& written) {
  REQUIRE(recorded.size() == written.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) CHECK(std::abs(recorded[i] - written[i]) < 1e-5 * written[i]);
}

torch::nn::Sequential chain() {
  torch::nn::Sequential net;
  for (int i = 0; i < 6; ++i) net->push_back(torch::nn::Linear(32, 32));
  return net;
}

constexpr CpuOffloadOptions small_pages() { return {.resident_bytes = 10'000, .page_bytes = 4096}; }

}  // namespace

TEST_CASE("a captured step has its learning rate and step count outside of the recording's memory", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    check_close(losses_of_steps(true, false), losses_of_steps(false, false));
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("a captured step is recorded again when its gradients were removed", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    check_close(losses_of_steps(true, true), losses_of_steps(false, true));
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("a captured backward is recorded again when its gradients were removed", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    check_close(losses_of_backwards(true), losses_of_backwards(false));
    const auto findings = sim::take_findings();
    INFO((findings.empty() ? std::string() : findings.front()));
    CHECK(findings.empty());
  }
}

TEST_CASE("a step of an offloaded module is not recorded, and trains as usual", "[sim]") {
  const auto train = [](bool captured) {
    Accelerator accelerator({.log_with = {}});
    set_seed(5);
    auto net = chain();
    net->to(accelerator.device());
    const auto offload = cpu_offload(net, small_pages());
    torch::optim::SGD sgd(net->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    const auto body = [&, &model = model, &optimizer = optimizer](const at::Tensor& x) {
      auto loss = model(x).square().mean();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return loss;
    };
    auto step = accelerator.capture(body);
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) {
      const auto x = at::full({4, 32}, 0.1 * i, accelerator.device());
      losses.push_back((captured ? step(x) : body(x)).template item<double>());
    }
    if (captured) CHECK_THAT(step.why_not(), ContainsSubstring("offloaded modules"));
    return losses;
  };
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    CHECK(train(true) == train(false));
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("another thread that runs out of memory does not look at the training thread's models", "[sim]") {
  test::start_clean(sim::Policy::late);
  Accelerator accelerator({.log_with = {}});
  Net net;
  auto model = accelerator.prepare(net);
  const auto device = accelerator.device();
  sim::set_memory_limit(device.index(), sim::reserved_bytes(device.index()) + 4096);
  const auto ask = [&] { CHECK_THROWS_AS(at::empty({1 << 20}, at::TensorOptions(device)), c10::OutOfMemoryError); };
  CHECK_THAT(test::written_to(STDERR_FILENO, ask), ContainsSubstring("parameters"));
  const auto line = test::written_to(STDERR_FILENO, [&] { std::thread(ask).join(); });
  CHECK_THAT(line, ContainsSubstring("no 4") && !ContainsSubstring("parameters"));
  sim::set_memory_limit(device.index(), 0);
}

// Collectives copy parameters before their stream is the current one, because the pager orders its copies after the
// current stream.
TEST_CASE("a pager that is used on another stream than the one that computes is found", "[sim]") {
  for (const bool on_other_stream : {false, true}) {
    test::start_clean(sim::Policy::late);
    auto net = chain();
    net->to(sim::device());
    const at::NoGradGuard no_grad;
    const auto input = at::ones({4, 32}, sim::device());
    const auto expected = net->forward(input).cpu();
    {
      const auto offload = cpu_offload(net, small_pages());
      const machine::Stream other(sim::device());
      at::Tensor result;
      for (int pass = 0; pass < 3; ++pass) {
        result = net->forward(input);
        other.follow_current();
        const auto parameters = net->parameters();
        for (const auto& parameter : parameters) {
          const auto in_use = net->forward(input);
          std::optional<c10::StreamGuard> guard;
          if (on_other_stream) guard.emplace(other.get());
          static_cast<void>(parameter.detach() * 1);
        }
        other.mark().hold_current_stream();
      }
      const auto is_right = at::equal(result.cpu(), expected);
      const auto findings = sim::take_findings();
      if (!on_other_stream) CHECK(is_right);
      CHECK(findings.empty() != on_other_stream);
    }
    sim::take_findings();
  }
}
