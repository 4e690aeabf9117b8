#include "paging/stores/staged_store.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "paging/stores/file_store.hpp"
#include "support/catch.hpp"

// With the CPU as the device, where copies are immediate. Tests on devices are in tests/unit/gpu.
namespace hortator::paging {
namespace {

using testing::folder;
using testing::pages_of;
using testing::same_bits;

std::shared_ptr<void> from_system(std::size_t bytes) { return {std::malloc(bytes), std::free}; }

// Keeps the number of buffers readable after the pager has taken the store.
struct StagedPager {
  StagedStore* store = nullptr;
  std::unique_ptr<Pager> pager;
};

StagedPager staged_pager(std::vector<NamedTensor> tensors, std::unique_ptr<Store> inner, std::size_t page_bytes,
                         const Pager::Options& options) {
  PagedStorages storages(std::move(tensors));
  auto pages = pages_of(storages, page_bytes);
  auto staged = std::make_unique<StagedStore>(std::move(inner), at::kCPU, from_system);
  auto* store = staged.get();
  return {store, std::make_unique<Pager>(std::move(storages), std::move(pages), std::move(staged), options)};
}

std::unique_ptr<Store> files_for(const std::vector<NamedTensor>& tensors, const std::filesystem::path& scratch) {
  const PagedStorages storages(tensors);
  std::vector<std::uint64_t> bytes;
  for (const auto& item : storages.items()) bytes.push_back(item.bytes);
  return std::make_unique<FileStore>(bytes, std::vector<FileLocation>(bytes.size()),
                                     FileStore::Options{.scratch = scratch});
}

std::vector<torch::nn::Linear> chain() {
  at::manual_seed(3);
  std::vector<torch::nn::Linear> layers;
  for (int i = 0; i < 8; ++i) layers.emplace_back(20, 20);
  return layers;
}

std::vector<at::Tensor> train(std::vector<torch::nn::Linear>& layers) {
  std::vector<at::Tensor> parameters;
  for (auto& layer : layers) {
    for (const auto& parameter : layer->parameters()) parameters.push_back(parameter);
  }
  torch::optim::SGD sgd(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 0; step < 4; ++step) {
    auto x = at::ones({2, 20});
    for (auto& layer : layers) x = at::tanh(layer->forward(x));
    x.square().sum().backward();
    sgd.step();
    sgd.zero_grad();
  }
  return parameters;
}

/// Fails every call.
class Closed final : public Store {
 public:
  comm::Work fetch(const Page&, std::span<std::byte>) override {
    return comm::Work([] { throw Error({.what = "closed"}); });
  }
  comm::Work publish(const Page&, std::span<const std::byte>) override { return {}; }
  bool follows_storages() const override { return true; }
};

}  // namespace

TEST_CASE("pages of files go through a few buffers, and training is the same bit for bit", "[staged_store]") {
  auto expected_layers = chain();
  const auto expected = train(expected_layers);
  auto layers = chain();
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& item : layers[i]->named_parameters())
      tensors.push_back({.name = std::to_string(i) + item.key(), .tensor = item.value()});
  }
  auto staged = staged_pager(tensors, files_for(tensors, folder("staged_store")), 2048, {.fetch_ahead = 2});
  train(layers);
  staged.pager->publish_changed();
  CHECK(staged.pager->counters().published > 0);
  CHECK(staged.pager->counters().fetched_ahead > 0);
  CHECK(staged.store->buffers() <= 5);
  staged.pager->release();
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(tensors[i].tensor.detach(), expected[i].detach()));
}

TEST_CASE("the operator throws what the inner store throws, and the buffer is reused", "[staged_store]") {
  const auto tensor = at::ones({100});
  auto staged = staged_pager({{.name = "t", .tensor = tensor}}, std::make_unique<Closed>(), 512, {});
  for (int i = 0; i < 5; ++i) CHECK_THROWS_WITH(tensor.sum(), ContainsSubstring("closed"));
  CHECK(staged.store->buffers() == 1);
}

TEST_CASE("buffers that are too small for a page are replaced", "[staged_store]") {
  const std::vector<NamedTensor> tensors = {{.name = "small", .tensor = at::ones({10})},
                                            {.name = "large", .tensor = at::ones({1000})}};
  auto staged =
      staged_pager(tensors, files_for(tensors, folder("staged_store")), 64, {.budget_bytes = 1, .fetch_ahead = 0});
  for (int i = 0; i < 3; ++i) {
    CHECK(tensors[0].tensor.sum().item<float>() == 10);
    CHECK(tensors[1].tensor.sum().item<float>() == 1000);
  }
  CHECK(staged.store->buffers() == 1);
}

}  // namespace hortator::paging
