#include "core/call_site.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator {
namespace {

thread_local const void* outermost = nullptr;

// A return address points behind the call, possibly into the next function.
Dl_info facts_of(const void* address) {
  Dl_info facts{};
  dladdr(static_cast<const char*>(address) - 1, &facts);
  return facts;
}

std::uint64_t offset_in(const Dl_info& facts, const void* address) {
  return static_cast<std::uint64_t>(static_cast<const char*>(address) - static_cast<const char*>(facts.dli_fbase));
}

std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : symbol;
}

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
    const auto facts = facts_of(outermost);
    // Without a module no value would be equal on all ranks.
    if (facts.dli_fname == nullptr) return 0;
    entry->second = core::hash(text::file_name(facts.dli_fname)) ^ offset_in(facts, outermost);
  }
  return entry->second;
}

std::string CallSite::describe_current() { return outermost == nullptr ? "" : describe_site(outermost); }

}  // namespace detail

std::string describe_site(const void* return_address) {
  const auto facts = facts_of(return_address);
  if (facts.dli_fname == nullptr) return "";
  const auto position =
      text::concat(text::file_name(facts.dli_fname), "+0x", std::hex, offset_in(facts, return_address) - 1);
  return facts.dli_sname != nullptr ? text::concat(position, " (", readable(facts.dli_sname), ")") : position;
}

AnyCallSite::AnyCallSite() : before_(std::exchange(outermost, nullptr)) {}

AnyCallSite::~AnyCallSite() { outermost = before_; }

}  // namespace hortator
