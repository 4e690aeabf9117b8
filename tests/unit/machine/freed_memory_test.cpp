#include "machine/memory/freed_memory.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "support/catch.hpp"
#include "support/memory.hpp"

using namespace hortator;

// Sanitizers replace the allocator.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

constexpr std::size_t block_bytes = std::size_t{24} << 20;
constexpr std::size_t blocks = 8;
constexpr std::int64_t step_bytes = block_bytes * blocks;

void take_and_free() {
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(blocks);  // no small blocks between them
  for (std::size_t i = 0; i < blocks; ++i) {
    taken.push_back(std::make_unique_for_overwrite<char[]>(block_bytes));
    std::memset(taken.back().get(), 1, block_bytes);
  }
}

}  // namespace

TEST_CASE("memory freed in a step stays with the process, unless the user has tuned the allocator") {
  take_and_free();  // the C library adapts its thresholds to the first blocks that it sees freed
  const auto before = test::memory_status("VmRSS:");
  const auto kept = [&] {
    take_and_free();
    return test::memory_status("VmRSS:") - before;
  };
  const std::array<std::array<const char*, 2>, 3> variables = {{{"MALLOC_TRIM_THRESHOLD_", "131072"},
                                                                {"MALLOC_MMAP_THRESHOLD_", "131072"},
                                                                {"GLIBC_TUNABLES", "glibc.malloc.top_pad=4096"}}};
  for (const auto& [name, value] : variables) {
    setenv(name, value, 1);
    CHECK_FALSE(machine::keep_freed_memory());
    CHECK_FALSE(machine::return_freed_blocks());
    unsetenv(name);
  }
  CHECK(kept() < step_bytes / 4);

  CHECK(machine::keep_freed_memory());
  CHECK(kept() > step_bytes / 4 * 3);

  machine::return_freed_memory();
  CHECK(test::memory_status("VmRSS:") - before < step_bytes / 4);

  CHECK(machine::return_freed_blocks());
  CHECK(kept() < step_bytes / 4);
}
#endif
