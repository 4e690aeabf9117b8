#include "paging/pager.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <hortator/error.hpp>
#include <thread>

#include "fixtures.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "support/catch.hpp"

namespace hortator::paging {
namespace {

using testing::evict_always;
using testing::page_in_host;
using testing::same_bits;

torch::nn::Sequential stack(int layers, std::int64_t width) {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(width, width));
  return net;
}

std::unique_ptr<Pager> page(const torch::nn::Sequential& net, std::size_t page_bytes, const Pager::Options& options) {
  return page_in_host(named_tensors(*net, {}), page_bytes, options);
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> made;
  for (const auto& tensor : tensors) made.push_back(tensor.detach().clone());
  return made;
}

}  // namespace

TEST_CASE("Parameters are evicted, fetched for an operator, and given back unchanged", "[pager]") {
  auto net = stack(4, 16);
  const auto before = copies(net->parameters());
  const auto input = at::randn({2, 16});
  const auto expected = net->forward(input);
  auto pager = page(net, 1024, {.budget_bytes = evict_always});
  for (const auto& parameter : net->parameters()) CHECK(interception::memory_of(parameter.storage()) == nullptr);
  CHECK(same_bits(net->forward(input), expected));
  for (const auto& parameter : net->parameters()) CHECK(interception::memory_of(parameter.storage()) == nullptr);
  CHECK(pager->counters().frame_bytes == 0);
  pager->release();
  const auto after = net->parameters();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(same_bits(after[i], before[i]));
    CHECK_FALSE(interception::carries_key(after[i]));
    CHECK(after[i].is_leaf());
    CHECK(after[i].requires_grad());
  }
}

TEST_CASE("Paged training is bitwise the same as training without paging", "[pager]") {
  const auto run = [](std::size_t budget) {
    at::manual_seed(3);
    auto net = stack(5, 24);
    std::unique_ptr<Pager> pager;
    if (budget > 0) pager = page(net, 3000, {.budget_bytes = budget});
    torch::optim::AdamW optimizer(net->parameters(), 1e-2);
    std::vector<at::Tensor> results;
    for (int step = 0; step < 6; ++step) {
      const auto loss = net->forward(at::randn({4, 24})).square().mean();
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      results.push_back(loss.detach());
    }
    if (pager) {
      CHECK((pager->counters().published > 0) == (budget < 10'000));  // otherwise all of it fits
      pager->release();
    }
    for (const auto& parameter : net->parameters()) results.push_back(parameter.detach());
    return results;
  };
  const auto expected = run(0);
  for (const std::size_t budget : {evict_always, std::size_t{8192}, std::size_t{1} << 20}) {
    const auto actual = run(budget);
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) CHECK(same_bits(actual[i], expected[i]));
  }
}

TEST_CASE("Taking the pointer of an absent parameter throws an error that names it", "[pager]") {
  auto net = stack(2, 8);
  auto pager = page(net, 1024, {.budget_bytes = evict_always});
  const auto weight = net->named_parameters()["1.weight"];
  CHECK_THROWS(weight.data_ptr<float>());
  CHECK_THROWS(weight.const_data_ptr<float>());
  CHECK_THROWS(weight.accessor<float, 2>());
  if constexpr (interception::AccessCanBeForbidden<c10::StorageImpl>) {
    CHECK_THROWS_WITH(weight.data_ptr<float>(), ContainsSubstring("1.weight"));
    CHECK_THROWS_WITH(weight.data_ptr(), ContainsSubstring("1.weight"));
    CHECK_THROWS_WITH(weight.storage().data_ptr(), ContainsSubstring("1.weight"));
  }
  const auto expected = weight.sum().item<float>();
  const interception::Hold hold(std::vector<at::Tensor>{weight}, interception::Access::read);
  const auto* values = weight.const_data_ptr<float>();
  CHECK(at::from_blob(const_cast<float*>(values), {8, 8}).sum().item<float>() == expected);
}

TEST_CASE("What is written within a hold is kept", "[pager]") {
  auto net = stack(3, 8);
  auto pager = page(net, 300, {.budget_bytes = evict_always});
  const auto weight = net->named_parameters()["1.weight"];
  {
    const interception::Hold hold(std::vector<at::Tensor>{weight}, interception::Access::write);
    std::fill_n(weight.data_ptr<float>(), weight.numel(), 2.5F);
  }
  net->forward(at::randn({1, 8}));
  CHECK(weight.eq(2.5).all().item<bool>());
}

TEST_CASE("Reading publishes nothing", "[pager]") {
  auto net = stack(4, 8);
  auto pager = page(net, 300, {.budget_bytes = evict_always});
  net->forward(at::randn({1, 8})).sum().backward();
  CHECK(pager->counters().fetched > 0);
  CHECK(pager->counters().published == 0);
}

TEST_CASE("The budget is kept through whole steps", "[pager]") {
  auto net = stack(12, 32);
  constexpr std::size_t page_bytes = 8192;  // one layer of 4224 bytes
  auto pager = page(net, page_bytes, {.budget_bytes = 4 * page_bytes});
  torch::optim::AdamW optimizer(net->parameters());
  for (int step = 0; step < 4; ++step) {
    net->forward(at::randn({2, 32})).sum().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(pager->counters().peak_frame_bytes <= 4 * page_bytes);
  CHECK(pager->counters().fetched_ahead > 0);
}

TEST_CASE("Repeated passes only use pages that were read ahead", "[pager]") {
  auto net = stack(12, 32);
  auto pager = page(net, 8192, {.fetch_ahead = 2});
  const auto input = at::randn({2, 32});
  net->forward(input);
  const auto before = pager->counters();
  const at::NoGradGuard no_grad;
  for (int pass = 0; pass < 3; ++pass) net->forward(input);
  const auto after = pager->counters();
  CHECK(after.fetched > before.fetched);
  CHECK(after.fetched - before.fetched == after.fetched_ahead - before.fetched_ahead);
}

TEST_CASE("A replaced parameter is reported in the next pass", "[pager]") {
  auto net = stack(4, 8);
  const auto input = at::randn({1, 8});
  auto pager = page(net, 300, {});
  net->forward(input);
  auto weight = net->named_parameters()["2.weight"];
  CHECK_NOTHROW(net->forward(input));
  weight.set_data(at::zeros({8, 8}));
  CHECK_THROWS_WITH(net->forward(input), ContainsSubstring("2.weight"));
  CHECK_THROWS_AS(net->forward(input), UsageError);
}

TEST_CASE("Parameters that another pager has are refused, and nothing is changed", "[pager]") {
  auto net = stack(2, 8);
  auto pager = page(net, 300, {.budget_bytes = evict_always});
  auto other = stack(2, 8);
  auto tensors = named_tensors(*other, {});
  tensors.push_back({.name = "shared", .tensor = net->parameters().front()});
  const auto before = copies(other->parameters());
  CHECK_THROWS_AS(page_in_host(tensors, 300, {}), UsageError);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(other->parameters()[i], before[i]));
  CHECK_FALSE(interception::carries_key(other->parameters().front()));
  CHECK_NOTHROW(net->forward(at::randn({1, 8})));
}

TEST_CASE("Using parameters after the pager's destruction throws", "[pager]") {
  auto net = stack(2, 8);
  page(net, 300, {}).reset();
  CHECK_THROWS_WITH(net->forward(at::randn({1, 8})), ContainsSubstring("has no values"));
  CHECK_THROWS_AS(page(net, 300, {}), Error);
}

TEST_CASE("Several threads use the same pages", "[pager]") {
  auto net = stack(6, 16);
  const auto input = at::randn({2, 16});
  const auto expected = net->forward(input);
  auto pager = page(net, 600, {.budget_bytes = evict_always});
  std::vector<int> right(3, 0);
  std::vector<std::thread> threads;
  for (auto& count : right) {
    threads.emplace_back([&] {
      const at::NoGradGuard no_grad;
      for (int i = 0; i < 30; ++i) count += same_bits(net->forward(input), expected) ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == std::vector<int>{30, 30, 30});
  CHECK(pager->counters().frame_bytes == 0);
}

TEST_CASE("Tied parameters share one storage", "[pager]") {
  auto a = torch::nn::Linear(8, 8);
  auto b = torch::nn::Linear(8, 8);
  b->weight = a->weight;
  std::vector<NamedTensor> tensors = {
      {.name = "a", .tensor = a->weight}, {.name = "b", .tensor = b->weight}, {.name = "bias", .tensor = a->bias}};
  auto pager = page_in_host(tensors, 64, {.budget_bytes = evict_always});
  CHECK(pager->storages().size() == 2);
  const at::NoGradGuard no_grad;
  a->weight.fill_(3);
  CHECK(b->weight.sum().item<float>() == 192);
}

}  // namespace hortator::paging
