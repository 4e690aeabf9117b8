#include "paging/deferred/late_values.hpp"

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/recording.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t large = 1 << 18;  // elements: 1 MiB
constexpr std::int64_t small = large - 1;

/// A tensor whose elements become 3 when they are needed. Counts how often, and frees `mark` with the function.
struct Late {
  at::Tensor tensor;
  std::shared_ptr<std::atomic<int>> fills = std::make_shared<std::atomic<int>>(0);
  std::weak_ptr<int> mark;

  explicit Late(std::int64_t elements = large) : tensor(at::ones({elements})) {
    const auto held = std::make_shared<int>(0);
    mark = held;
    paging::fill_later(tensor, [fills = fills, held](const at::Tensor& values) {
      ++*fills;
      values.fill_(3);
    });
  }
  bool has_values() const { return tensor.eq(3).all().item<bool>(); }
};

}  // namespace

TEST_CASE("late values are made once, when an operator reads the tensor, and their function is freed") {
  const Late late;
  CHECK(paging::lacks_memory(late.tensor));
  CHECK(paging::awaits_construction(late.tensor));
  CHECK(*late.fills == 0);
  CHECK(late.has_values());
  CHECK(late.has_values());
  CHECK(*late.fills == 1);
  CHECK(late.mark.expired());
  CHECK_FALSE(paging::is_deferred(late.tensor));
}

TEST_CASE("a view, another thread and a write see late values") {
  const Late viewed, threaded, written;
  CHECK(viewed.tensor.view({-1, 2}).select(1, 0).eq(3).all().item<bool>());
  std::thread([&] { CHECK(threaded.has_values()); }).join();
  written.tensor.add_(1);
  CHECK(written.tensor.eq(4).all().item<bool>());
}

TEST_CASE("several threads that need the same late values wait for one that makes them") {
  for (int round = 0; round < 20; ++round) {
    const Late late;
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += late.has_values() ? 1 : 0; });
    for (auto& thread : threads) thread.join();
    CHECK(right == 4);
    CHECK(*late.fills == 1);
  }
}

TEST_CASE("late values that are dropped are never made") {
  const Late late;
  paging::drop_values(late.tensor, "dropped");
  CHECK(*late.fills == 0);
  CHECK(late.mark.expired());
  const Late given;
  paging::give_memory(given.tensor);
  given.tensor.fill_(2);
  CHECK(*given.fills == 0);
}

TEST_CASE("small tensors have their values at once") {
  const Late late(small);
  CHECK(*late.fills == 1);
  CHECK(late.mark.expired());
  CHECK(late.tensor.const_data_ptr<float>()[small - 1] == 3);
}

TEST_CASE("where late values cannot be made, the reader gets the error, and the next one tries again") {
  auto tensor = at::ones({large});
  int calls = 0;
  paging::fill_later(tensor, [&calls](const at::Tensor& values) {
    if (++calls == 1) throw std::runtime_error("the file has gone");
    values.fill_(5);
  });
  CHECK_THROWS_WITH(tensor.sum(), ContainsSubstring("the file has gone"));
  CHECK(paging::lacks_memory(tensor));
  CHECK(tensor.eq(5).all().item<bool>());
  CHECK(calls == 2);
}

TEST_CASE("a tensor whose initialisation was recorded takes late values in its place") {
  at::Tensor tensor;
  {
    const paging::ConstructionScope scope(paging::Recording::Order::as_written);
    CHECK(paging::defers_construction());
    tensor = at::empty({large}).normal_();
    paging::fill_later(tensor, [](const at::Tensor& values) { values.fill_(7); });
    CHECK(paging::lacks_memory(tensor));
  }
  CHECK_FALSE(paging::defers_construction());
  CHECK(tensor.eq(7).all().item<bool>());
}
