#include "base/call_site.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "base/hash.hpp"
#include "base/text.hpp"

namespace hortator {
namespace {

thread_local const void* innermost = nullptr;

// A return address lies behind the call, perhaps in the next function already.
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

CallSite::CallSite(const void* return_address) : is_outermost_(innermost == nullptr) {
  if (is_outermost_) innermost = return_address;
}

CallSite::~CallSite() {
  if (is_outermost_) innermost = nullptr;
}

std::uint64_t CallSite::current() {
  if (innermost == nullptr) return 0;
  // The loader's lists are long, the places in a program few.
  thread_local std::unordered_map<const void*, std::uint64_t> known;
  const auto [entry, is_new] = known.try_emplace(innermost, 0);
  if (is_new) {
    const auto facts = facts_of(innermost);
    const auto module = text::file_name(facts.dli_fname != nullptr ? facts.dli_fname : "");
    entry->second = base::hash(module) ^ offset_in(facts, innermost);
  }
  return entry->second;
}

std::string CallSite::describe_current() {
  if (innermost == nullptr) return "";
  const auto facts = facts_of(innermost);
  const auto module = text::file_name(facts.dli_fname != nullptr ? facts.dli_fname : "?");
  const auto place = text::concat(module, "+0x", std::hex, offset_in(facts, innermost) - 1);
  return facts.dli_sname != nullptr ? text::concat(place, " (", readable(facts.dli_sname), ")") : place;
}

}  // namespace hortator
