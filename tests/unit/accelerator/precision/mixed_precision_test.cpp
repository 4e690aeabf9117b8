#include <ATen/autocast_mode.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

namespace {

struct Outputs {
  at::Tensor product;
  std::optional<at::Tensor> integers;
  std::map<std::string, std::vector<at::Tensor>> more;
};

// Records the type in which it computes, and returns that type.
struct Probe : torch::nn::Module {
  explicit Probe(at::ScalarType type = at::kFloat) { weight = register_parameter("weight", at::ones({2, 2}, type)); }
  Outputs forward(const at::Tensor& x) {
    auto product = x.matmul(weight);
    computed_in = product.scalar_type();
    return {.product = product,
            .integers = at::ones({1}, at::kLong),
            .more = {{"twice", {product, product.to(at::kDouble)}}}};
  }
  at::ScalarType other_method(const at::Tensor& x) const { return x.matmul(weight).scalar_type(); }
  at::Tensor weight;
  at::ScalarType computed_in = at::kByte;
};

struct ByReference : torch::nn::Module {
  ByReference() { weight = register_parameter("weight", at::ones({2, 2})); }
  const at::Tensor& forward(const at::Tensor& x) { return last = x.matmul(weight); }
  void clear() { last.reset(); }
  at::Tensor weight;
  at::Tensor last;
};

struct ReturnsNothing : torch::nn::Module {
  void forward(const at::Tensor& /*x*/) { ++calls; }
  int calls = 0;
};

struct Throwing : torch::nn::Module {
  at::Tensor forward(const at::Tensor& /*x*/) { throw std::runtime_error("from within"); }
};

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

at::Tensor x() { return at::ones({2, 2}); }

}  // namespace

TEST_CASE("a model call computes in 16 bits and returns fp32 at any nesting depth; other code is unaffected") {
  for (const auto& [precision, type] : {std::pair(Precision::bf16, at::kBFloat16), {Precision::fp16, at::kHalf}}) {
    Accelerator accelerator({.mixed_precision = precision, .cpu = true});
    CHECK(accelerator.mixed_precision() == precision);
    Probe probe;
    auto model = accelerator.prepare(probe);
    const auto outputs = model(x());
    CHECK(probe.computed_in == type);
    CHECK(outputs.product.scalar_type() == at::kFloat);
    CHECK(outputs.integers->scalar_type() == at::kLong);
    CHECK(outputs.more.at("twice")[0].scalar_type() == at::kFloat);
    CHECK(outputs.more.at("twice")[1].scalar_type() == at::kDouble);
    CHECK(model->other_method(x()) == at::kFloat);
    CHECK(x().matmul(x()).scalar_type() == at::kFloat);
    accelerator.backward(outputs.product.sum());
    CHECK(probe.weight.grad().scalar_type() == at::kFloat);
  }
}

TEST_CASE("without mixed precision types are the module's own") {
  Accelerator accelerator({.mixed_precision = Precision::no, .cpu = true});
  Probe probe(at::kBFloat16);
  auto model = accelerator.prepare(probe);
  CHECK(model(x().to(at::kBFloat16)).product.scalar_type() == at::kBFloat16);
  const auto mixed = accelerator.autocast();
  CHECK(x().matmul(x()).scalar_type() == at::kFloat);
}

TEST_CASE("mixed precision supports modules that return a reference or nothing, or that throw") {
  Accelerator accelerator({.mixed_precision = Precision::bf16, .cpu = true});
  ByReference by_reference;
  ReturnsNothing returns_nothing;
  Throwing throwing;
  auto [first, second, third] = accelerator.prepare(by_reference, returns_nothing, throwing);
  CHECK(first(x()).scalar_type() == at::kFloat);
  CHECK(by_reference.last.scalar_type() == at::kBFloat16);
  second(x());
  CHECK(returns_nothing.calls == 1);
  CHECK_THROWS_WITH(third(x()), "from within");
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("the options of autocast hold for prepared models and for autocast() without arguments") {
  Accelerator accelerator({.mixed_precision = Precision::bf16, .autocast = {.enabled = false}, .cpu = true});
  ByReference net;
  auto model = accelerator.prepare(net);
  model(x());
  CHECK(net.last.scalar_type() == at::kFloat);
  {
    const auto mixed = accelerator.autocast();
    CHECK(x().matmul(x()).scalar_type() == at::kFloat);
  }
  const auto mixed = accelerator.autocast({});
  CHECK(x().matmul(x()).scalar_type() == at::kBFloat16);
}

TEST_CASE("autocast() applies to code outside models, and can be disabled in an inner scope") {
  Accelerator accelerator({.mixed_precision = Precision::bf16, .cpu = true});
  Probe probe;
  auto model = accelerator.prepare(probe);
  {
    auto mixed = accelerator.autocast({.enabled = true, .cache_enabled = true});
    CHECK(x().matmul(x()).scalar_type() == at::kBFloat16);
    CHECK(model->other_method(x()) == at::kBFloat16);
    {
      auto exact = accelerator.autocast({.enabled = false});
      CHECK(x().matmul(x()).scalar_type() == at::kFloat);
    }
    CHECK(model(x()).product.scalar_type() == at::kFloat);
    CHECK(x().matmul(x()).scalar_type() == at::kBFloat16);
  }
  CHECK(x().matmul(x()).scalar_type() == at::kFloat);
}

TEST_CASE("changed weights are cast again at the next call") {
  Accelerator accelerator({.mixed_precision = Precision::bf16, .cpu = true});
  Probe probe;
  auto model = accelerator.prepare(probe);
  CHECK(model(x()).product[0][0].item<double>() == 2);
  {
    const at::NoGradGuard no_grad;
    probe.weight.mul_(2);
  }
  CHECK(model(x()).product[0][0].item<double>() == 4);
}

TEST_CASE("the environment sets the precision if the program does not") {
  {
    const EnvironmentVariable variable("ACCELERATE_MIXED_PRECISION", "bf16");
    CHECK(Accelerator({.cpu = true}).mixed_precision() == Precision::bf16);
    CHECK(Accelerator({.mixed_precision = Precision::no, .cpu = true}).mixed_precision() == Precision::no);
  }
  CHECK(Accelerator({.cpu = true}).mixed_precision() == Precision::no);
  const EnvironmentVariable wrong("HORTATOR_MIXED_PRECISION", "half");
  CHECK_THROWS_WITH(Accelerator({.cpu = true}),
                    ContainsSubstring("HORTATOR_MIXED_PRECISION: expected one of no, fp16, bf16, fp8, got 'half'"));
}

TEST_CASE("invalid scaler options are refused") {
  CHECK_THROWS_WITH(Accelerator({.grad_scaler = {.backoff_factor = 2}}), ContainsSubstring("backoff_factor is 2"));
}

TEST_CASE("different precisions on ranks are an error on all ranks") {
  const State state;
  if (state.num_processes() == 1) return;
  const EnvironmentVariable variable("HORTATOR_MIXED_PRECISION", state.is_last_process() ? "fp16" : "bf16");
  CHECK_THROWS_WITH(Accelerator({.cpu = true}),
                    ContainsSubstring("mixed_precision (HORTATOR_MIXED_PRECISION) differs between ranks"));
}

TEST_CASE("training in 16 bits lowers the loss") {
  for (const auto precision : {Precision::bf16, Precision::fp16}) {
    Accelerator accelerator({.mixed_precision = precision, .cpu = true});
    at::manual_seed(3);
    Net net;
    torch::optim::AdamW adamw(net->parameters(), 2e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto data = at::rand({16, 3});
    const auto target = data.sum(1, true);
    double first = 0;
    double last = 0;
    for (int step = 0; step < 150; ++step) {
      const auto loss = at::mse_loss(model(data), target);
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model.parameters(), 5.0);
      optimizer.step();
      optimizer.zero_grad();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    CHECK(last < 0.05 * first);
  }
}

TEST_CASE("on the CPU the tf32 option changes nothing") {
  const bool before = at::globalContext().allowTF32CuDNN();
  const Accelerator accelerator({.tf32 = !before, .cpu = true});
  CHECK(at::globalContext().allowTF32CuDNN() == before);
}

TEST_CASE("fp8 along parallel.tensor is an error that names both") {
  const State state;
  if (state.num_processes() == 1) return;
  Accelerator accelerator(
      {.mixed_precision = Precision::fp8, .cpu = true, .parallel = {.tensor = state.num_processes()}});
  torch::nn::Sequential net(torch::nn::Linear(16, 16), torch::nn::Linear(16, 16), torch::nn::Linear(16, 16));
  CHECK_THROWS_WITH(accelerator.prepare(net),
                    Catch::Matchers::Contains("mixed_precision fp8 was asked for with parallel.tensor"));
}

TEST_CASE("results and buffers have the types of the policy, and gradients travel in that of reduce") {
  struct WithBuffer : torch::nn::Module {
    WithBuffer() {
      weight = register_parameter("weight", at::ones({2, 2}));
      mean = register_buffer("mean", at::full({2}, 0.5));
      count = register_buffer("count", at::zeros({1}, at::kLong));
    }
    Outputs forward(const at::Tensor& x) {
      const auto product = x.matmul(weight) + mean;
      return {.product = product, .integers = count + 1, .more = {{"twice", {product.to(at::kDouble)}}}};
    }
    at::Tensor weight, mean, count;
  };
  Accelerator accelerator(
      {.mixed_precision = Precision::bf16,
       .mixed_precision_policy = {.reduce = at::kBFloat16, .output = at::kHalf, .buffer = at::kBFloat16},
       .cpu = true});
  CHECK(accelerator.options().ddp.comm_hook == DDPCommunicationHookType::bf16);
  WithBuffer net;
  auto model = accelerator.prepare(net);
  CHECK(net.mean.scalar_type() == at::kBFloat16);
  CHECK(net.count.scalar_type() == at::kLong);
  const auto outputs = model(x());
  CHECK(outputs.product.scalar_type() == at::kHalf);
  CHECK(outputs.more.at("twice")[0].scalar_type() == at::kHalf);
  CHECK(outputs.integers->scalar_type() == at::kLong);
  accelerator.backward(outputs.product.sum());
  CHECK(net.weight.grad().scalar_type() == at::kFloat);
  CHECK(test::same_on_all_ranks(accelerator, net.weight.grad()));
}

TEST_CASE("a policy of types that does not fit is refused by name") {
  using Hook = DDPCommunicationHookType;
  CHECK_THROWS_WITH(Accelerator({.mixed_precision_policy = {.reduce = at::kLong}}),
                    ContainsSubstring("mixed_precision_policy.reduce is Long"));
  CHECK_THROWS_WITH(Accelerator({.mixed_precision = Precision::no, .mixed_precision_policy = {.output = at::kHalf}}),
                    ContainsSubstring("mixed_precision_policy.output is set without mixed_precision"));
  CHECK_THROWS_WITH(Accelerator({.mixed_precision_policy = {.reduce = at::kHalf}, .ddp = {.comm_hook = Hook::bf16}}),
                    ContainsSubstring("mixed_precision_policy.reduce and ddp.comm_hook are both set"));
}
