#include "formats/file/cache_filler.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "formats/file/raw_file.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr std::size_t cached_file_bytes = std::size_t{4} << 20;

/// The fraction of the file that is in the page cache.
double share_in_cache(const formats::RawFile& file) {
  auto* map = ::mmap(nullptr, cached_file_bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  REQUIRE(map != MAP_FAILED);
  std::vector<unsigned char> pages(cached_file_bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  REQUIRE(::mincore(map, cached_file_bytes, pages.data()) == 0);
  ::munmap(map, cached_file_bytes);
  const auto held = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1U) != 0; });
  return static_cast<double>(held) / static_cast<double>(pages.size());
}

formats::RawFile file_on_disk() {
  const std::vector<std::byte> bytes(cached_file_bytes, std::byte{7});
  ::unlink("to_cache");
  auto written = formats::RawFile::create("to_cache");
  written.write_at(0, bytes.data(), bytes.size());
  written.sync();
  written.close();
  auto file = formats::RawFile::open_for_reading("to_cache");
  file.forget_cached();
  return file;
}

}  // namespace

TEST_CASE("bring loads bytes into the page cache", "[cache_filler]") {
  const auto file = file_on_disk();
  formats::CacheFiller cache;
  cache.bring(file.descriptor(), 0, cached_file_bytes / 2);  // the system may read further ahead
  CHECK(share_in_cache(file) >= 0.5);
  cache.bring(file.descriptor(), cached_file_bytes / 2, cached_file_bytes / 2);
  CHECK(share_in_cache(file) == 1);
}

TEST_CASE("bring ignores files that cannot be cached", "[cache_filler]") {
  const auto file = file_on_disk();
  formats::CacheFiller cache;
  cache.bring(file.descriptor(), cached_file_bytes, cached_file_bytes);
  cache.bring(-1, 0, cached_file_bytes);
  cache.bring(file.descriptor(), 0, cached_file_bytes);
  CHECK(share_in_cache(file) == 1);
}
