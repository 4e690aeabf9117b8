#include "paging/frame_pool.hpp"

#include <cstring>

#include "support/catch.hpp"

namespace hortator::paging {

constexpr std::size_t kib = 1024;

TEST_CASE("A frame is reused", "[frame_pool]") {
  FramePool pool;
  const std::byte* first = nullptr;
  {
    const auto frame = pool.take(64 * kib);
    first = frame.data();
    CHECK(pool.used_bytes() == 64 * kib);
  }
  CHECK(pool.used_bytes() == 0);
  CHECK(pool.free_bytes() == 64 * kib);
  const auto again = pool.take(64 * kib);
  CHECK(again.data() == first);
  CHECK(pool.free_bytes() == 0);
}

TEST_CASE("Lent memory is used first, and frames beside it return to the system", "[frame_pool]") {
  std::vector<std::byte> memory(24 * kib);
  const std::span all(memory);
  FramePool pool;
  pool.lend({all.subspan(0, 8 * kib), all.subspan(8 * kib, 8 * kib), all.subspan(16 * kib)});
  const auto first = pool.take(8 * kib);
  CHECK(first.data() == memory.data());
  {
    const auto second = pool.take(4 * kib);
    CHECK(second.data() == memory.data() + 8 * kib);
    CHECK(second.bytes() == 4 * kib);
    const auto third = pool.take(8 * kib);
    const auto own = pool.take(8 * kib);
    const auto larger = pool.take(64 * kib);
    CHECK(third.data() == memory.data() + 16 * kib);
    CHECK((own.data() < memory.data() || own.data() >= memory.data() + memory.size()));
    std::memset(larger.data(), 1, larger.bytes());
  }
  CHECK(pool.used_bytes() == 8 * kib);
  CHECK(pool.free_bytes() == 0);
  CHECK(pool.take(8 * kib).data() == memory.data() + 8 * kib);
}

TEST_CASE("Small frames share lent memory, and leave room for as many large ones as if there were none",
          "[frame_pool]") {
  constexpr std::size_t large = 16 * kib;
  constexpr std::size_t budget = 3 * large;
  std::vector<std::byte> memory(budget);
  const std::span all(memory);
  FramePool pool;
  pool.lend({all.subspan(0, large), all.subspan(large, large), all.subspan(2 * large)});
  const auto is_lent = [&](const Frame& frame) {
    return frame.data() >= memory.data() && frame.data() + frame.bytes() <= memory.data() + budget;
  };
  std::vector<Frame> small;
  for (int i = 0; i < 4; ++i) small.push_back(pool.take(4 * kib));
  auto first = pool.take(large);
  const auto second = pool.take(large);
  CHECK((is_lent(small.front()) && is_lent(small.back()) && is_lent(first) && is_lent(second)));
  CHECK_FALSE(pool.fits(4 * kib, budget));
  CHECK(pool.fits(4 * kib, budget + 4 * kib));
  first = Frame();
  CHECK(pool.fits(large, budget));
  small.push_back(pool.take(12 * kib));
  CHECK(is_lent(small.back()));
  small[1] = Frame();
  CHECK_FALSE(pool.fits(8 * kib, budget));  // 8 KiB are free, in two gaps
  CHECK(pool.fits(4 * kib, budget));
  CHECK(pool.take(4 * kib).bytes() == 4 * kib);
  const auto beside = pool.take(8 * kib);
  CHECK_FALSE(is_lent(beside));
}

TEST_CASE("A frame of another size is resized", "[frame_pool]") {
  FramePool pool;
  { const auto frame = pool.take(64 * kib); }
  const auto larger = pool.take(200 * kib);
  CHECK(larger.bytes() == 200 * kib);
  std::memset(larger.data(), 1, larger.bytes());
  CHECK(pool.free_bytes() == 0);
}

TEST_CASE("The free frame that is nearest in size is taken", "[frame_pool]") {
  FramePool pool;
  {
    const auto small = pool.take(8 * kib);
    const auto large = pool.take(800 * kib);
  }
  const auto frame = pool.take(12 * kib);
  CHECK(pool.free_bytes() == 800 * kib);
}

TEST_CASE("Free frames are returned to the system", "[frame_pool]") {
  FramePool pool;
  {
    const auto a = pool.take(64 * kib);
    const auto b = pool.take(64 * kib);
  }
  pool.trim(64 * kib);
  CHECK(pool.free_bytes() == 64 * kib);
  pool.trim(0);
  CHECK(pool.free_bytes() == 0);
}

TEST_CASE("Sizes are rounded up to whole pages of the system", "[frame_pool]") {
  FramePool pool;
  CHECK(pool.take(1).bytes() % (4 * kib) == 0);
}

}  // namespace hortator::paging
