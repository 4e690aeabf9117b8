#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/samplers/distributed.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>
#include <torch/data/samplers/stream.h>
#include <torch/data/transforms/stack.h>
#include <torch/data/transforms/tensor.h>

#include <ATen/Context.h>
#include <ATen/ops/rand.h>

#include <hortator/data.hpp>
#include <hortator/datasets/torch_sampler.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

struct Squares : torch::data::datasets::Dataset<Squares> {
  std::optional<std::size_t> count = 7;
  std::optional<std::size_t> size() const override { return count; }
  Example<> get(std::size_t i) override {
    if (i == 6) throw std::out_of_range("no six");
    return {at::full({2}, static_cast<double>(i)), at::full({}, static_cast<double>(i * i))};
  }
};

struct State : torch::data::datasets::StatefulDataset<State> {
  std::optional<std::vector<Example<>>> get_batch(std::size_t) override { return {}; }
  std::optional<std::size_t> size() const override { return {}; }
  void reset() override {}
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
};

struct Plus final : torch::data::transforms::TensorTransform<> {
  at::Tensor operator()(at::Tensor input) override { return input + 1; }
};

using Stacked = torch::data::datasets::MapDataset<Squares, torch::data::transforms::Stack<>>;
using StackedState = torch::data::datasets::MapDataset<State, torch::data::transforms::Stack<>>;
using TorchLoader = decltype(torch::data::make_data_loader(std::declval<Stacked>(), torch::data::DataLoaderOptions()));

// Taken as they are, or refused with the reason.
static_assert(hortator::detail::is_numbered<Squares>);
static_assert(hortator::detail::is_numbered<Stacked>);
static_assert(hortator::detail::TorchStreamDataset<State>);
static_assert(hortator::detail::TorchStreamDataset<StackedState>);
static_assert(!hortator::detail::TorchStreamDataset<Stacked>);
static_assert(hortator::detail::is_torch_loader<TorchLoader>);
static_assert(hortator::detail::is_torch_loader<TorchLoader::element_type>);
static_assert(!hortator::detail::is_torch_loader<Stacked>);
static_assert(!hortator::detail::is_torch_loader<DataLoader<at::Tensor>>);

namespace samplers = torch::data::samplers;
static_assert(hortator::detail::TorchSampler<samplers::RandomSampler>);
static_assert(!hortator::detail::TorchSampler<samplers::StreamSampler>);
static_assert(hortator::detail::is_distributed<samplers::DistributedRandomSampler>);
static_assert(!hortator::detail::is_distributed<samplers::RandomSampler>);

}  // namespace

TEST_CASE("samplers of torch::data order the samples, alike on all ranks, and leave the default generator alone") {
  const auto options = [] {
    return LoaderOptions{.batch_size = 2, .sampler = torch_sampler(samplers::RandomSampler(9)), .seed = 4};
  };
  auto alone = data_loader(Numbers{9}, options());
  const auto first = read(alone);
  const auto second = read(alone);
  CHECK(sorted(first) == counted(9));
  CHECK(sorted(second) == counted(9));
  CHECK(first != second);
  Batch distributed;
  for (std::size_t step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      at::rand({1 + rank});  // ranks draw their own numbers meanwhile
      const auto batches = read(bound(9, options(), {.rank = rank, .world = 2, .even_batches = false}));
      if (step < batches.size()) distributed.insert(distributed.end(), batches[step].begin(), batches[step].end());
    }
  }
  Batch in_order;
  for (const auto& batch : first) in_order.insert(in_order.end(), batch.begin(), batch.end());
  CHECK(distributed == in_order);

  at::manual_seed(1);
  const auto expected = at::rand({3});
  at::manual_seed(1);
  alone.set_epoch(0);
  CHECK(read(alone) == first);
  CHECK(at::equal(at::rand({3}), expected));
  const auto few = data_loader(Numbers{9}, {.batch_size = 3, .sampler = torch_sampler(samplers::SequentialSampler(4))});
  CHECK(few.size() == 2);
  CHECK(read(few) == Batches{{0, 1, 2}, {3}});
}

TEST_CASE("a mapped data set of torch::data gives its batches, stacked by its transform") {
  auto loader = data_loader(Squares().map(Plus()).map(torch::data::transforms::Stack<>()), {.batch_size = 2});
  static_assert(std::is_same_v<decltype(loader), DataLoader<Example<>>>);
  CHECK(loader.dataset_size() == 7);
  loader.bind({.rank = 1, .world = 2});
  auto batch = loader.begin();
  CHECK(values(batch->data.to(at::kLong)) == Batch{3, 3, 4, 4});
  CHECK(values(batch->target.to(at::kLong)) == Batch{4, 9});
  CHECK_THROWS_WITH(++batch, ContainsSubstring("samples 6, 0 of the data set could not be read: no six"));
}

TEST_CASE("one that is not stacked is joined as examples are") {
  auto loader = data_loader(Squares().map(Plus()), {.batch_size = 3});
  for (auto& batch : loader) {
    CHECK(batch.data.sizes() == at::IntArrayRef({3, 2}));
    CHECK(values(batch.target.to(at::kLong)) == Batch{0, 1, 4});
    break;
  }
}
