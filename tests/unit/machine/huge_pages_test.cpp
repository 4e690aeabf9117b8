#include "machine/memory/huge_pages.hpp"

#include <sys/mman.h>

#include <string>

#include "support/catch.hpp"
#include "support/memory.hpp"

using hortator::machine::joined_areas;
using hortator::machine::MemoryArea;
using hortator::machine::prefer_huge_pages;
using hortator::test::has_huge_pages;
using hortator::test::mapping_flags;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::byte* address(std::uintptr_t value) { return reinterpret_cast<std::byte*>(value); }

}  // namespace

TEST_CASE("neighbours are joined, whatever their order, and small areas left out") {
  const auto joined = joined_areas(
      {{address(7000), 1000}, {address(1000), 3000}, {address(4050), 2000}, {address(9000), 99}}, 100, 2000);
  REQUIRE(joined.size() == 1);
  CHECK(joined[0].data() == address(1000));
  CHECK(joined[0].size() == 5050);
}

TEST_CASE("an area within another does not shorten it") {
  const auto joined = joined_areas({{address(1000), 5000}, {address(2000), 100}}, 100, 2000);
  REQUIRE(joined.size() == 1);
  CHECK(joined[0].size() == 5000);
}

TEST_CASE("no areas are no areas") { CHECK(joined_areas({}, 100, 2000).empty()); }

TEST_CASE("the system is asked for huge pages where one fits") {
  if (!has_huge_pages()) {
    WARN("skipped: this system has no huge pages");
    return;
  }
  auto* memory = ::mmap(nullptr, 16 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* begin = static_cast<std::byte*>(memory);
  prefer_huge_pages({{begin + 100, 3 * mib}, {begin + 3 * mib + 200, 12 * mib}});
  CHECK(mapping_flags(memory).find(" hg ") != std::string::npos);
  ::munmap(memory, 16 * mib);
}

TEST_CASE("memory too small for a huge page is left alone") {
  auto* memory = ::mmap(nullptr, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  prefer_huge_pages({{static_cast<std::byte*>(memory), mib}});
  CHECK(mapping_flags(memory).find(" hg ") == std::string::npos);
  ::munmap(memory, mib);
}
