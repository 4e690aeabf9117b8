#include <hortator/data.hpp>
#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/split_between_processes.hpp>
#include <map>
#include <string>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

template <typename T>
auto part(const T& values, int rank, int world, bool apply_padding = false) {
  return hortator::detail::split(values, rank, world, {.apply_padding = apply_padding});
}

struct Prompts {
  std::vector<std::string> texts;
  at::Tensor tokens;
  auto fields() { return std::tie(texts, tokens); }
};

}  // namespace

TEST_CASE("parts are contiguous, the first one longer, and together everything") {
  for (std::int64_t values = 0; values < 12; ++values) {
    for (int world = 1; world <= 5; ++world) {
      Batch all;
      for (int rank = 0; rank < world; ++rank) {
        const auto mine = part(counted(values), rank, world);
        CHECK(static_cast<std::int64_t>(mine.size()) == values / world + (rank < values % world ? 1 : 0));
        all.insert(all.end(), mine.begin(), mine.end());
        const auto rows = part(at::arange(values), rank, world);
        CHECK(hortator::data_test::values(rows) == mine);
      }
      CHECK(all == counted(values));
    }
  }
}

TEST_CASE("padding repeats the last of all values, wherever a rank is short") {
  for (const int world : {1, 2, 3, 4, 5}) {
    for (std::int64_t values = 1; values < 12; ++values) {
      for (int rank = 0; rank < world; ++rank) {
        auto expected = part(counted(values), rank, world);
        expected.resize(static_cast<std::size_t>((values + world - 1) / world), values - 1);
        CHECK(part(counted(values), rank, world, true) == expected);
        CHECK(hortator::data_test::values(part(at::arange(values), rank, world, true)) == expected);
        auto loader = data_loader(part(Numbers{values}, rank, world, true), {.batch_size = 100});
        CHECK(read(loader) == Batches{expected});
      }
    }
  }
  CHECK(part(Batch{}, 0, 1, true).empty());
  CHECK_THROWS_WITH(part(Batch{}, 0, 2, true), ContainsSubstring("got no values, with apply_padding"));
  CHECK_THROWS_WITH(part(at::empty({0}), 1, 2, true), ContainsSubstring("got no values, with apply_padding"));
}

TEST_CASE("structures of lists are split together") {
  const std::map<std::string, std::vector<std::string>> text = {{"a", {"x", "y", "z"}}, {"b", {"1", "2", "3"}}};
  CHECK(part(text, 1, 2).at("a") == std::vector<std::string>{"z"});
  CHECK(part(text, 1, 2, true).at("b") == std::vector<std::string>{"3", "3"});
  CHECK(text.at("a").size() == 3);

  const auto [texts, tokens] = part(Prompts{{"x", "y", "z"}, at::arange(6).view({3, 2})}, 1, 2, true);
  CHECK(texts == std::vector<std::string>{"z", "z"});
  CHECK(values(tokens) == Batch{4, 5, 4, 5});
  const auto pair = part(std::pair(Batch{1, 2}, std::vector<bool>{true, false}), 1, 3);
  CHECK(pair.first == Batch{2});
  CHECK(pair.second == std::vector<bool>{false});
  CHECK(part(std::map<std::string, Batch>(), 1, 2).empty());

  const std::map<std::string, Batch> uneven = {{"a", {1, 2, 3}}, {"b", {1, 2}}};
  CHECK_THROWS_WITH(part(uneven, 0, 2), ContainsSubstring("different lengths: ['a'] has 3, ['b'] has 2"));
  CHECK_THROWS_WITH(part(at::scalar_tensor(3), 0, 2), ContainsSubstring("got a single number"));
  CHECK(part(uneven, 0, 1) == uneven);
}

TEST_CASE("parts of data sets go into a loader, and some may be empty") {
  CHECK(read(data_loader(part(Numbers{7}, 2, 3), {.batch_size = 3})) == Batches{{5, 6}});
  CHECK(read(data_loader(part(Numbers{2}, 2, 3), {.batch_size = 3})).empty());
  auto rows = data_loader(part(tensor_dataset(at::arange(10) * 10), 1, 2), {.batch_size = 3, .workers = 2});
  CHECK(read(rows) == Batches{{50, 60, 70}, {80, 90}});

  struct Unique {
    std::unique_ptr<std::int64_t> value = std::make_unique<std::int64_t>(3);
    std::int64_t size() const { return 4; }
    std::int64_t get(std::int64_t i) { return *value + i; }
  };
  CHECK(read(data_loader(hortator::detail::split(Unique(), 1, 2, {}), {.batch_size = 2})) == Batches{{5, 6}});
}
