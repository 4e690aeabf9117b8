#include "core/activity/updates.hpp"

#include <atomic>

namespace hortator::activity {
namespace {

constinit std::atomic<std::int64_t> before{0};
constinit std::atomic<std::int64_t> made{0};

}  // namespace

void count_update() { made.fetch_add(1, std::memory_order_relaxed); }
void note_updates_before(std::int64_t updates) { before.store(updates, std::memory_order_relaxed); }
std::int64_t updates() { return before.load(std::memory_order_relaxed) + made.load(std::memory_order_relaxed); }

}  // namespace hortator::activity
