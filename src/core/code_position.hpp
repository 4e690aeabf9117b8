#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hortator {

/// Where code is: the program or library, and the offset in it as addr2line takes it.
struct CodePosition {
  std::string_view file;         ///< without its folder
  std::uint64_t offset = 0;      ///< of the return address
  const char* symbol = nullptr;  ///< mangled; null: unknown
};

/// Finds the call that returns to this address. Empty if nothing is loaded there.
std::optional<CodePosition> position_of(const void* return_address);

/// The same for people, "train+0x2f41 (main)". Empty if nothing is loaded there.
std::string describe_site(const void* return_address);

}  // namespace hortator
