#include "core/call_site.hpp"

#include <unordered_map>
#include <utility>

#include "core/code_position.hpp"
#include "core/hash.hpp"

namespace hortator {
namespace {

thread_local const void* outermost = nullptr;

}  // namespace

namespace detail {

CallSite::CallSite(const void* return_address) : is_outermost_(outermost == nullptr) {
  if (is_outermost_) outermost = return_address;
}

CallSite::~CallSite() {
  if (is_outermost_) outermost = nullptr;
}

std::uint64_t CallSite::current() {
  if (outermost == nullptr) return 0;
  // Cached: looking up an address is slow, and a program has few call sites.
  thread_local std::unordered_map<const void*, std::uint64_t> known;
  const auto [entry, is_new] = known.try_emplace(outermost, 0);
  if (is_new) {
    const auto position = position_of(outermost);
    // Without a module no value would be equal on all ranks.
    if (!position) return 0;
    entry->second = core::hash(position->file) ^ position->offset;
  }
  return entry->second;
}

std::string CallSite::describe_current() { return outermost == nullptr ? "" : describe_site(outermost); }

}  // namespace detail

AnyCallSite::AnyCallSite() : before_(std::exchange(outermost, nullptr)) {}

AnyCallSite::~AnyCallSite() { outermost = before_; }

}  // namespace hortator
