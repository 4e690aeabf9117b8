#include <torch/data/datasets/base.h>

#include <hortator/data.hpp>
#include <hortator/error.hpp>
#include <string>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

template <typename Get>
struct From {
  std::int64_t count;
  Get make;
  std::int64_t size() const { return count; }
  auto get(std::int64_t i) const { return make(i); }
};
template <typename Get>
From(std::int64_t, Get) -> From<Get>;

at::Tensor scalar(std::int64_t i) { return at::tensor(i); }

/// The second batch of two of a data set whose sample i is make(i).
template <typename Get>
auto second_batch(Get make) {
  auto loader = data_loader(From{4, make}, {.batch_size = 2});
  auto batch = loader.begin();
  ++batch;
  return *batch;
}

}  // namespace

TEST_CASE("tensors are stacked and numbers become a vector of their type") {
  const auto rows = second_batch([](std::int64_t i) { return at::tensor({i, 10 * i}); });
  CHECK(rows.sizes() == at::IntArrayRef({2, 2}));
  CHECK(values(rows) == Batch{2, 20, 3, 30});
  CHECK(values(second_batch([](std::int64_t i) { return static_cast<std::uint16_t>(i); })) == Batch{2, 3});
  CHECK(second_batch([](std::int64_t i) { return static_cast<float>(i); }).scalar_type() == at::kFloat);
  const auto bits = second_batch([](std::int64_t i) { return i > 2; });
  CHECK(bits.scalar_type() == at::kBool);
  CHECK(values(bits.to(at::kLong)) == Batch{0, 1});
}

TEST_CASE("examples, pairs and tuples are joined part by part") {
  const auto examples = second_batch([](std::int64_t i) { return Example<>(scalar(i), scalar(-i)); });
  static_assert(std::is_same_v<decltype(examples), const Example<>>);
  CHECK(values(examples.data) == Batch{2, 3});
  CHECK(values(examples.target) == Batch{-2, -3});

  const auto labelled =
      second_batch([](std::int64_t i) { return Example<at::Tensor, std::int64_t>(scalar(i), i + 1); });
  CHECK(values(labelled.target) == Batch{3, 4});
  const auto bare = second_batch([](std::int64_t i) { return torch::data::TensorExample(scalar(i)); });
  CHECK(values(bare.data) == Batch{2, 3});

  const auto [first, pair] =
      second_batch([](std::int64_t i) { return std::make_tuple(scalar(i), std::make_pair(i, scalar(7))); });
  CHECK(values(first) == Batch{2, 3});
  CHECK(values(pair.first) == Batch{2, 3});
  CHECK(values(pair.second) == Batch{7, 7});
}

TEST_CASE("samples of any type are joined by the user's function") {
  const auto text = From{5, [](std::int64_t i) { return std::string(static_cast<std::size_t>(i), 'x'); }};
  auto loader = data_loader(text, {.batch_size = 2}, [](const std::vector<std::string>& samples) {
    std::string all;
    for (const auto& sample : samples) all += sample + "/";
    return all;
  });
  std::vector<std::string> seen;
  for (auto& batch : loader) seen.push_back(batch);
  CHECK(seen == std::vector<std::string>{"/x/", "xx/xxx/", "xxxx/"});
}

TEST_CASE("data sets of torch::data are read, streams among them refused") {
  struct Torch : torch::data::datasets::Dataset<Torch> {
    std::optional<std::size_t> count;
    explicit Torch(std::optional<std::size_t> n) : count(n) {}
    std::optional<std::size_t> size() const override { return count; }
    Example<> get(std::size_t i) override { return {scalar(static_cast<std::int64_t>(i)), scalar(0)}; }
  };
  auto loader = data_loader(Torch(3), {.batch_size = 2});
  CHECK(loader.dataset_size() == 3);
  Batches seen;
  for (auto& batch : loader) seen.push_back(values(batch.data));
  CHECK(seen == Batches{{0, 1}, {2}});
  CHECK_THROWS_WITH(data_loader(Torch({}), {}), ContainsSubstring("does not know its size"));
}

TEST_CASE("a data set that reads batches is asked for batches") {
  struct Reader {
    std::int64_t size() const { return 5; }
    std::int64_t get(std::int64_t) const { throw std::logic_error("one by one"); }
    Batch get_batch(std::span<const std::int64_t> samples) const {
      if (samples[0] == 4) throw std::runtime_error("torn page");
      return {samples.begin(), samples.end()};
    }
  };
  auto loader = data_loader(Reader{}, {.batch_size = 2});
  Batches seen;
  const auto loop = [&] {
    for (auto& batch : loader) seen.push_back(batch);
  };
  CHECK_THROWS_WITH(loop(), ContainsSubstring("sample 4 of the data set could not be read: torn page"));
  CHECK(seen == Batches{{0, 1}, {2, 3}});
}

TEST_CASE("data sets may be of a kind that cannot be copied") {
  struct Unique {
    std::unique_ptr<std::int64_t> value = std::make_unique<std::int64_t>(3);
    std::int64_t size() const { return 2; }
    std::int64_t get(std::int64_t i) { return *value + i; }
  };
  CHECK(read(data_loader(Unique{}, {.batch_size = 2})) == Batches{{3, 4}});
}

TEST_CASE("samples that do not fit together are named, without a stack trace") {
  const auto ragged = From{30, [](std::int64_t i) { return at::zeros({i == 7 ? 2 : 1}); }};
  auto loader = data_loader(ragged, {.batch_size = 10});
  const auto loop = [&] {
    for ([[maybe_unused]] auto& batch : loader) FAIL("a batch was made");
  };
  CHECK_THROWS_WITH(
      loop(),
      ContainsSubstring("samples 0, 1, 2, 3, 4, 5, 6, 7 and 2 more could not be joined into a batch: stack expects"));
  CHECK_THROWS_WITH(loop(), !ContainsSubstring("frame #"));
}

TEST_CASE("samples are read without gradients, in the loop's thread too") {
  for (const int prefetch : {0, 1}) {
    const auto leaf = at::ones({1}).set_requires_grad(true);
    auto loader = data_loader(From{2, [leaf](std::int64_t) { return leaf * 2; }}, {.prefetch = prefetch});
    for (auto& batch : loader) CHECK_FALSE(batch.requires_grad());
  }
}

TEST_CASE("containers of tensors are moved to the device, other types are left alone") {
  struct Own {
    at::Tensor tensor = at::zeros({1});
  };
  using Nested =
      std::tuple<std::vector<at::Tensor>, std::map<std::string, std::pair<at::Tensor, int>>,
                 Example<at::Tensor, std::string>, torch::data::TensorExample, std::vector<bool>, Own, at::Tensor>;
  Nested nested{{at::zeros({1}), at::zeros({2})},
                {{"a", {at::zeros({1}), 3}}},
                {at::zeros({1}), "label"},
                at::zeros({1}),
                {true},
                {},
                {}};
  hortator::detail::change_tensors(
      nested, [](const at::Tensor& tensor) { return hortator::data::placed(tensor, {.device = at::kMeta}); });
  CHECK(std::get<0>(nested).at(0).is_meta());
  CHECK(std::get<0>(nested).at(1).is_meta());
  CHECK(std::get<1>(nested).at("a").first.is_meta());
  CHECK(std::get<1>(nested).at("a").second == 3);
  CHECK(std::get<2>(nested).data.is_meta());
  CHECK(std::get<2>(nested).target == "label");
  CHECK(std::get<3>(nested).data.is_meta());
  CHECK_FALSE(std::get<5>(nested).tensor.is_meta());
  CHECK_FALSE(std::get<6>(nested).defined());
}
