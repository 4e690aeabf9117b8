#include "machine/memory/huge_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "support/catch.hpp"
#include "support/memory.hpp"

using hortator::machine::memory_on_huge_pages;
using hortator::test::has_huge_pages;
using hortator::test::mapping_flags;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
}

TEST_CASE("pieces are memory of their own, on whole pages") {
  const std::vector<std::size_t> sizes = {5, 3 * mib + 1, 4096, 2 * mib};
  const auto pieces = memory_on_huge_pages(sizes);
  REQUIRE(pieces.size() == sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) std::memset(pieces[i].get(), static_cast<int>(i + 1), sizes[i]);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(pieces[i].get());
    CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 4096 == 0);
    CHECK(std::all_of(bytes, bytes + sizes[i], [&](unsigned char byte) { return byte == i + 1; }));
  }
}

TEST_CASE("a piece that goes gives its memory back, and leaves the others") {
  auto pieces = memory_on_huge_pages({4 * mib, 4 * mib, 4 * mib});
  REQUIRE(pieces.size() == 3);
  auto* const gone = pieces[1].get();
  auto* const kept = static_cast<char*>(pieces[2].get());
  std::memset(kept, 7, 4 * mib);
  pieces[1].clear();
  CHECK(mapping_flags(gone).empty());
  CHECK(kept[4 * mib - 1] == 7);
}

TEST_CASE("the memory is on huge pages where the system has them") {
  if (!has_huge_pages()) {
    WARN("skipped: this system has no huge pages");
    return;
  }
  const auto pieces = memory_on_huge_pages({3 * mib, 13 * mib});
  REQUIRE(pieces.size() == 2);
  CHECK(mapping_flags(pieces[0].get()).find(" hg ") != std::string::npos);
  CHECK(reinterpret_cast<std::uintptr_t>(pieces[0].get()) % (2 * mib) == 0);
}

TEST_CASE("memory that the system does not have is nothing") {
  CHECK(memory_on_huge_pages({std::size_t{1} << 60}).empty());
  const auto none = memory_on_huge_pages({});
  CHECK(none.empty());
}
