#include "core/code_position.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "core/text/text.hpp"

namespace hortator {
namespace {

std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : symbol;
}

}  // namespace

// A return address points behind the call, possibly into the next function.
std::optional<CodePosition> position_of(const void* return_address) {
  const auto* const address = static_cast<const char*>(return_address);
  Dl_info facts{};
  dladdr(address - 1, &facts);
  if (facts.dli_fname == nullptr) return std::nullopt;
  return CodePosition{.file = text::file_name(facts.dli_fname),
                      .offset = static_cast<std::uint64_t>(address - static_cast<const char*>(facts.dli_fbase)),
                      .symbol = facts.dli_sname};
}

std::string describe_site(const void* return_address) {
  const auto position = position_of(return_address);
  if (!position) return "";
  const auto text = text::concat(position->file, "+0x", std::hex, position->offset - 1);
  return position->symbol != nullptr ? text::concat(text, " (", readable(position->symbol), ")") : text;
}

}  // namespace hortator
