// Operators on the simulated accelerator give the CPU's results, whenever they run.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <functional>

#include "sim_fixture.hpp"

using namespace hortator;

namespace {

using Operation = std::function<at::Tensor(const at::Tensor&)>;

// Views, resized outputs, overlapping writes, lists, results whose shape depends on data.
const std::vector<std::pair<const char*, Operation>> operations = {
    {"a view of a view", [](const at::Tensor& x) { return x.t().narrow(0, 1, 2).select(1, 0) + 1; }},
    {"writing through a view",
     [](const at::Tensor& x) {
       auto y = x.clone();
       y.narrow(0, 1, 2).mul_(3);
       return y;
     }},
    {"an output that is resized",
     [](const at::Tensor& x) {
       auto y = at::empty({0}, x.options());
       at::sum_out(y, x, {1});
       return y;
     }},
    {"cat",
     [](const at::Tensor& x) {
       return at::cat({x, x * 2}, 1);
     }},
    {"nonzero", [](const at::Tensor& x) { return (x > 0).nonzero(); }},
    {"masked_select", [](const at::Tensor& x) { return x.masked_select(x > 0); }},
    {"index", [](const at::Tensor& x) { return x.index({at::zeros({2}, x.options().dtype(at::kLong))}); }},
    {"index_put", [](const at::Tensor& x) { return x.index_put({x > 0}, at::zeros({}, x.options())); }},
    {"unique", [](const at::Tensor& x) { return std::get<0>(at::_unique(x.round())); }},
    {"sort", [](const at::Tensor& x) { return std::get<1>(x.sort(1)); }},
    {"variance", [](const at::Tensor& x) { return x.var(1); }},
    {"softmax", [](const at::Tensor& x) { return at::log_softmax(x, 1); }},
    {"foreach",
     [](const at::Tensor& x) {
       return at::stack(at::_foreach_norm({x, x * 2}));
     }},
    {"where", [](const at::Tensor& x) { return at::where(x > 0, x, at::zeros_like(x)); }},
    {"a scalar of the CPU", [](const at::Tensor& x) { return x * at::full({}, 3.0); }},
    {"expand",
     [](const at::Tensor& x) {
       return x.unsqueeze(0).expand({2, -1, -1}).contiguous();
     }},
    {"another type", [](const at::Tensor& x) { return x.to(at::kDouble).to(at::kHalf); }},
    {"embedding", [](const at::Tensor& x) { return at::embedding(x, at::ones({3}, x.options().dtype(at::kLong))); }},
    {"bmm", [](const at::Tensor& x) { return at::bmm(x.unsqueeze(0), x.t().unsqueeze(0)); }},
    {"resize_",
     [](const at::Tensor& x) {
       auto y = x.clone().view({-1});
       y.resize_({40});
       return y.narrow(0, 0, 20);
     }},
    {"cumsum in place",
     [](const at::Tensor& x) {
       auto y = x.clone();
       return y.cumsum_(0);
     }},
};

torch::nn::Sequential some_net() {
  torch::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1)), torch::nn::Tanh(),
                               torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(64, 5));
}

std::vector<at::Tensor> train_some_net(c10::Device device) {
  auto net = some_net();
  net->to(device);
  torch::manual_seed(3);
  const auto input = at::randn({4, 2, 8, 8}).to(device);
  const auto target = at::randint(5, {4}).to(device);
  torch::optim::AdamW optimizer(net->parameters(), 1e-2);
  std::vector<at::Tensor> results;
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(net->forward(input), target);
    loss.backward();
    optimizer.step();
    results.push_back(loss.detach());
  }
  for (const auto& parameter : net->parameters()) results.push_back(parameter.detach());
  return results;
}

}  // namespace

TEST_CASE("an index with numbers does not wait, wherever they stand; one with a mask does", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto whole = at::arange(12, at::kFloat).view({3, 4});
  const auto numbers = at::arange(2, at::kLong);
  const auto far = whole.to(sim::device());
  const auto far_numbers = numbers.to(sim::device());
  const auto before = sim::counts().host_waits;
  const auto rows = at::index(far, {far_numbers, std::nullopt});
  const auto columns = at::index(far, {std::nullopt, far_numbers});
  CHECK(sim::counts().host_waits == before);
  const auto selected = at::index(far, {far.gt(5)});
  CHECK(sim::counts().host_waits == before + 1);
  CHECK(at::equal(rows.cpu(), at::index(whole, {numbers, std::nullopt})));
  CHECK(at::equal(columns.cpu(), at::index(whole, {std::nullopt, numbers})));
  CHECK(at::equal(selected.cpu(), at::index(whole, {whole.gt(5)})));
}

TEST_CASE("operators give the CPU's results under each policy", "[sim]") {
  torch::manual_seed(1);
  const auto here = at::randn({4, 5});
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    for (const auto& [name, operation] : operations) {
      INFO(name);
      const auto there = operation(here.to(sim::device()));
      CHECK(there.device() == sim::device());
      CHECK(at::equal(there.cpu(), operation(here)));
    }
    // LibTorch composes it of other operators on devices.
    const auto normed = at::layer_norm(here.to(sim::device()), {here.size(1)});
    CHECK(at::allclose(normed.cpu(), at::layer_norm(here, {here.size(1)}), 1e-5, 1e-6));
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("training gives the CPU's losses and parameters, and waits for nothing", "[sim]") {
  const auto expected = train_some_net(at::kCPU);
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    const auto before = sim::counts().host_waits;
    const auto actual = train_some_net(sim::device());
    CHECK(sim::counts().host_waits <= before + 16);  // copies to the device: parameters, input and target
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(at::allclose(actual[i].cpu(), expected[i], 1e-5, 1e-6));
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("errors of shapes are thrown where the operator is called", "[sim]") {
  test::start_clean(sim::Policy::late);
  CHECK_THROWS_WITH(at::mm(at::ones({3, 2}, sim::device()), at::ones({3, 2}, sim::device())),
                    ContainsSubstring("cannot be multiplied"));
}
