#include <algorithm>
#include <hortator/data.hpp>
#include <hortator/datasets/shuffle_buffer.hpp>
#include <hortator/error.hpp>
#include <numeric>
#include <ranges>

#include "streams.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

using Order = std::vector<std::int64_t>;

template <typename Stream>
Order drawn(ShuffleBuffer<Stream>& buffer) {
  Order order;
  while (const auto sample = buffer.next()) order.push_back(*sample);
  return order;
}

Order in_order(std::int64_t count) {
  Order order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

ShuffleBuffer<Order> buffered(std::int64_t count, const ShuffleBufferOptions& options) {
  return ShuffleBuffer(in_order(count), options);
}

}  // namespace

TEST_CASE("a shuffle buffer gives each sample once, at most its size ahead") {
  for (const std::int64_t count : {0, 1, 5, 100}) {
    for (const std::int64_t size : {1, 2, 7, 100, 1000}) {
      auto buffer = buffered(count, {.size = size, .seed = 3});
      const auto order = drawn(buffer);
      for (std::int64_t i = 0; i < std::ssize(order); ++i) CHECK(order[static_cast<std::size_t>(i)] < i + size);
      if (size == 1) CHECK(order == in_order(count));
      auto sorted = order;
      std::ranges::sort(sorted);
      CHECK(sorted == in_order(count));
    }
  }
}

TEST_CASE("the order depends on seed and epoch only") {
  const auto order = [](std::uint64_t seed, std::int64_t epoch) {
    auto buffer = buffered(200, {.size = 50, .seed = seed});
    buffer.set_epoch(epoch);
    return drawn(buffer);
  };
  CHECK(order(1, 0) == order(1, 0));
  CHECK(order(1, 0) != order(1, 1));
  CHECK(order(1, 0) != order(2, 0));
  auto buffer = buffered(200, {.size = 50, .seed = 1});
  CHECK(drawn(buffer) == order(1, 0));
  buffer.set_epoch(1);
  CHECK(drawn(buffer) == order(1, 1));
}

TEST_CASE("all samples are about equally likely to come first out of a buffer that holds all") {
  std::vector<int> first(10);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    auto buffer = buffered(10, {.size = 10, .seed = seed});
    ++first[static_cast<std::size_t>(*buffer.next())];
  }
  for (const auto times : first) CHECK((times > 140 && times < 260));
}

TEST_CASE("a loader over a shuffle buffer has another order in each epoch, and the stream's size") {
  auto loader = data_loader(buffered(20, {.size = 8}), {.batch_size = 20});
  CHECK(loader.size() == 1);
  const auto first = read(loader), second = read(loader);
  CHECK(first != second);
  auto sorted = second.at(0);
  std::ranges::sort(sorted);
  CHECK(sorted == read(data_loader(in_order(20), {.batch_size = 20})).at(0));
  CHECK_THROWS_WITH(buffered(3, {.size = 0}), ContainsSubstring("expected a number from 1, got '0'"));
}
