#include "machine/memory/freed_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>  // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/environment/environment.hpp"

namespace hortator::machine {

#ifdef __GLIBC__
namespace {

bool is_tuned_by_user() {
  constexpr std::array names = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_",
                                "MALLOC_TOP_PAD_"};
  const auto is_set = [](const char* name) { return core::variable(name).has_value(); };
  return std::any_of(names.begin(), names.end(), is_set) ||
         core::variable("GLIBC_TUNABLES").value_or("").find("glibc.malloc.") != std::string::npos;
}

}  // namespace

// 32 MiB is the largest threshold that glibc accepts, and the one that it reaches automatically after a block of that
// size was freed.
bool keep_freed_memory() {
  constexpr int max_kept = 32 << 20;
  constexpr int never = -1;
  return !is_tuned_by_user() && mallopt(M_MMAP_THRESHOLD, max_kept) == 1 && mallopt(M_TRIM_THRESHOLD, never) == 1;
}

bool return_freed_blocks() { return !is_tuned_by_user() && mallopt(M_MMAP_THRESHOLD, 256 << 10) == 1; }

void return_freed_memory() noexcept { malloc_trim(0); }
#else
bool keep_freed_memory() { return false; }
bool return_freed_blocks() { return false; }

void return_freed_memory() noexcept {}
#endif

}  // namespace hortator::machine
