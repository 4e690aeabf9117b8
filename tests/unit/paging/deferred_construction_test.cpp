#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>

#include <functional>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/bigmodel/offload.hpp>

#include "fixtures.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"

namespace hortator {
namespace {

using testing::folder;
using testing::same_bits;

using ModulePtr = std::shared_ptr<torch::nn::Module>;

/// All operators that draw random numbers, mixed with others that do not, and with some that read.
struct Mixed : torch::nn::Module {
  Mixed() {
    register_module("first", torch::nn::Linear(40, 30));
    register_module("norm", torch::nn::BatchNorm1d(30));
    register_module("words", torch::nn::Embedding(torch::nn::EmbeddingOptions(50, 16).padding_idx(3)));
    register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(16, 12).num_layers(2).bidirectional(true)));
    register_module("layer", torch::nn::TransformerEncoderLayer(torch::nn::TransformerEncoderLayerOptions(16, 4)));
    auto orthogonal = register_parameter("orthogonal", torch::empty({12, 12}));
    torch::nn::init::orthogonal_(orthogonal);  // reads the random numbers that it has drawn
    const auto at = torch::arange(10, torch::kFloat).unsqueeze(1);
    register_buffer("angles", torch::sin(at / torch::arange(1, 5, torch::kFloat)));
    register_parameter("scaled", torch::randn({5, 5}).mul_(0.02).add_(1));
    register_parameter("direct", torch::rand({7}, torch::kDouble));
    register_buffer("shuffled", torch::randperm(20));
    register_module("last", torch::nn::Linear(30, 10));
  }
};

std::vector<at::Tensor> values(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const auto& tensor : module.parameters()) all.push_back(tensor.detach().clone());
  for (const auto& tensor : module.buffers()) all.push_back(tensor.detach().clone());
  return all;
}

void check_same(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    INFO("tensor " << i << " of " << expected[i].sizes());
    CHECK(same_bits(actual[i], expected[i]));
  }
}

std::vector<at::Tensor> reversed(const torch::nn::Module& module) {
  auto parameters = module.parameters();
  std::vector<at::Tensor> all(parameters.size());
  for (std::size_t i = parameters.size(); i-- > 0;) all[i] = parameters[i].detach().clone();
  return all;
}

constexpr std::int64_t width = 1024;
constexpr std::size_t layer = width * width * 4;

bool has_memory(const at::Tensor& tensor) { return interception::memory_of(tensor.storage()) != nullptr; }

}  // namespace

TEST_CASE("Values are bitwise those of immediate construction", "[deferred_construction]") {
  at::manual_seed(11);
  const auto expected = values(Mixed());
  const auto after = at::randn({3});
  at::manual_seed(11);
  const auto made = construct_deferred([] { return std::make_shared<Mixed>(); });
  check_same(values(*made), expected);
  CHECK(same_bits(at::randn({3}), after));  // the generator's state is the same
  for (const auto& parameter : made->parameters()) {
    CHECK_FALSE(interception::carries_key(parameter));
    CHECK(parameter.requires_grad());
    CHECK(parameter.is_leaf());
  }
}

TEST_CASE("Values do not depend on which one is needed first", "[deferred_construction]") {
  const auto make = [] {
    torch::nn::Sequential net;
    for (int i = 0; i < 5; ++i) net->push_back(torch::nn::Linear(20, 20));
    return net;
  };
  at::manual_seed(12);
  const auto expected = reversed(*make());
  at::manual_seed(12);
  check_same(reversed(*construct_deferred(make)), expected);
}

TEST_CASE("A tensor has no memory before it is needed, even if random numbers after its own are drawn",
          "[deferred_construction]") {
  const auto make = [] {
    std::vector<at::Tensor> all;
    for (int i = 0; i < 3; ++i) all.push_back(torch::empty({width, width}));
    for (const auto& tensor : all) tensor.normal_().mul_(0.02);
    for (const auto& tensor : all) tensor.narrow(0, 1, 2).uniform_().add_(1);
    return all;
  };
  at::manual_seed(21);
  const auto expected = make();
  const auto after = at::randn({3});
  at::manual_seed(21);
  const machine::RecyclingAllocator counted(0);
  const auto actual = construct_deferred(make);
  const auto base = machine::RecyclingAllocator::counters().used_bytes;
  machine::RecyclingAllocator::reset_peak();
  for (const auto next : {2, 0, 1}) {
    const Pin pin(actual[static_cast<std::size_t>(next)]);
    if (next == 2) CHECK_FALSE((has_memory(actual[0]) || has_memory(actual[1])));
    if (next == 0) CHECK_FALSE(has_memory(actual[1]));
  }
  CHECK(machine::RecyclingAllocator::counters().peak_used_bytes <= base + 4 * layer);  // one more than they have
  check_same(actual, expected);
  CHECK(same_bits(at::randn({3}), after));
}

TEST_CASE("Random numbers of a generator of the program's own are drawn once and in order", "[deferred_construction]") {
  const auto make = [] {
    auto generator = at::detail::createCPUGenerator(3);
    std::vector<at::Tensor> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(torch::empty({20, 20}).normal_(0, 1, generator));
      all.push_back(torch::empty({20, 20}).normal_());
    }
    return all;
  };
  at::manual_seed(22);
  const auto expected = make();
  at::manual_seed(22);
  const auto actual = construct_deferred(make);
  for (std::size_t i = actual.size(); i-- > 0;) CHECK(same_bits(actual[i].detach().clone(), expected[i]));
}

TEST_CASE("Nothing is in memory until it is needed", "[deferred_construction]") {
  const machine::RecyclingAllocator counted(0);
  const auto base = machine::RecyclingAllocator::counters().used_bytes;
  const auto net = construct_deferred([] { return torch::nn::Linear(2048, 2048); });
  CHECK(machine::RecyclingAllocator::counters().used_bytes == base);
  CHECK_FALSE(has_memory(net->weight));
  CHECK_FALSE(has_memory(net->bias));
  CHECK_THROWS(net->weight.data_ptr<float>());
  CHECK(net->weight.sizes() == at::IntArrayRef({2048, 2048}));
  { const Pin pin(net->weight); }
  CHECK_NOTHROW(net->weight.data_ptr<float>());
}

TEST_CASE("Small tensors can be written by pointers", "[deferred_construction]") {
  const auto make = [] {
    auto table = torch::zeros({4, 3});
    auto cells = table.accessor<float, 2>();
    for (int i = 0; i < 4; ++i) cells[i][i % 3] = static_cast<float>(i);
    auto drawn = torch::zeros({5}, torch::kDouble);
    drawn.uniform_();
    auto alias = torch::empty({6});
    alias.data().normal_(0, 0.02);
    auto part = torch::ones({4});
    part.narrow(0, 1, 2).normal_();
    return std::vector<at::Tensor>{table, torch::tensor({1.5, -2.0}), drawn, alias, part, torch::rand({3})};
  };
  at::manual_seed(19);
  const auto expected = make();
  const auto after = at::randn({3});
  at::manual_seed(19);
  const auto actual = construct_deferred(make);
  CHECK_FALSE(interception::carries_key(actual[0]));
  CHECK_FALSE(interception::carries_key(actual[1]));
  CHECK(same_bits(actual[5].detach().clone(), expected[5]));
  for (std::size_t i = 0; i < actual.size(); ++i) CHECK(same_bits(actual[i].detach().clone(), expected[i]));
  CHECK(same_bits(at::randn({3}), after));
}

TEST_CASE("Random numbers that the program draws meanwhile do not change, and are not drawn twice",
          "[deferred_construction]") {
  at::manual_seed(13);
  const auto eager_net = torch::nn::Linear(10, 10);
  at::manual_seed(13);
  const auto undisturbed = at::randn({4});
  const auto further = at::randn({4});
  at::manual_seed(13);
  const auto net = construct_deferred([] { return torch::nn::Linear(10, 10); });
  CHECK(same_bits(at::randn({4}), undisturbed));
  CHECK(same_bits(net->weight.detach().clone(), eager_net->weight.detach()));
  CHECK(same_bits(at::randn({4}), further));
}

TEST_CASE("The generator's state is that of immediate construction, even when values were needed meanwhile",
          "[deferred_construction]") {
  const auto make = [] {
    auto first = torch::nn::Linear(9, 9);
    const auto norm = first->weight.norm();  // reads
    auto second = torch::nn::Linear(9, 9);
    return std::vector<at::Tensor>{first->weight, norm, second->weight, second->bias};
  };
  at::manual_seed(17);
  const auto expected = make();
  const auto after = at::randn({3});
  at::manual_seed(17);
  const auto actual = construct_deferred(make);
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(same_bits(actual[i].detach().clone(), expected[i].detach().clone()));
  CHECK(same_bits(at::randn({3}), after));
}

TEST_CASE("A random operator on ordinary tensors runs after all recorded steps before it", "[deferred_construction]") {
  const auto outside = at::zeros({6});
  const auto make = [&] {
    auto first = torch::nn::Linear(9, 9);
    outside.normal_();
    auto second = torch::nn::Linear(9, 9);
    return std::vector<at::Tensor>{first->weight, second->weight, second->bias};
  };
  at::manual_seed(14);
  auto expected = make();
  expected.push_back(outside.clone());
  at::manual_seed(14);
  auto actual = construct_deferred(make);
  actual.push_back(outside.clone());
  for (auto& tensor : actual) tensor = tensor.detach().clone();
  check_same(actual, expected);
}

TEST_CASE("An offloaded module is initialised page by page", "[deferred_construction]") {
  const auto make = [] {
    torch::nn::Sequential net;
    for (int i = 0; i < 8; ++i) net->push_back(torch::nn::Linear(width, width));
    return net;
  };
  const auto input = at::randn({2, width});
  at::manual_seed(15);
  const auto expected = make()->forward(input);
  at::manual_seed(15);
  const machine::RecyclingAllocator counted(0);
  const auto base = machine::RecyclingAllocator::counters().used_bytes;
  auto net = construct_deferred(make);
  machine::RecyclingAllocator::reset_peak();
  const auto offload =
      disk_offload(net, folder("deferred"), {.resident_bytes = 3 * layer, .page_bytes = layer, .recycled_bytes = 0});
  CHECK(machine::RecyclingAllocator::counters().peak_used_bytes <= base + layer);
  CHECK(same_bits(net->forward(input), expected));
  CHECK(offload.counters().peak_resident_bytes <= 3 * layer);
}

TEST_CASE("Values that a store has are never made, the others are", "[deferred_construction]") {
  const auto make = [] { return std::vector<torch::nn::Linear>{torch::nn::Linear(8, 8), torch::nn::Linear(8, 8)}; };
  at::manual_seed(16);
  const auto expected = make()[1]->weight.detach().clone();
  at::manual_seed(16);
  const auto layers = construct_deferred(make);
  std::vector<paging::NamedTensor> tensors = {{.name = "w", .tensor = layers[0]->weight}};
  paging::PagedStorages storages(tensors);
  auto pages = testing::pages_of(storages, 1024);
  auto store = std::make_unique<paging::HostStore>(pages, paging::HostStore::Use::in_frames);
  std::vector<std::byte> zeros(pages[0].bytes, std::byte{0});
  store->publish(pages[0], zeros).wait();
  const paging::Pager pager(std::move(storages), std::move(pages), std::move(store),
                            {.origin = paging::Pager::Origin::store});
  CHECK(layers[0]->weight.sum().item<float>() == 0);
  CHECK(same_bits(layers[1]->weight.detach().clone(), expected));
}

TEST_CASE("Memory that is given to large weights is to be on huge pages", "[deferred_construction]") {
  if (!test::has_huge_pages()) {
    WARN("skipped: this system has no huge pages");
    return;
  }
  const auto layer = construct_deferred([] { return torch::nn::Linear(2048, 2048); });
  paging::give_lacking_memory({layer->weight, layer->bias});
  CHECK(has_memory(layer->bias));
  const auto* middle = layer->weight.const_data_ptr<float>() + layer->weight.numel() / 2;
  CHECK(test::mapping_flags(middle).find(" hg ") != std::string::npos);
}

TEST_CASE("Scopes nest", "[deferred_construction]") {
  const DeferredConstruction outer;
  const auto a = torch::nn::Linear(4, 4);
  const auto b = construct_deferred([] { return torch::nn::Linear(4, 4); });
  const auto c = torch::nn::Linear(4, 4);
  for (const auto& made : {a, b, c}) CHECK_FALSE(has_memory(made->weight));
}

}  // namespace hortator
