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
