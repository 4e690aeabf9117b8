#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <string>

namespace hortator::detail {

/// Records where the user's program called a public function, for as long as the call lasts. Functions that all ranks
/// must call from the same place begin with `const CallSite site(__builtin_return_address(0));`. If calls are nested,
/// the outermost counts. Templates must be [[gnu::noinline]], so that the address is their caller's.
class HORTATOR_API CallSite {
 public:
  explicit CallSite(const void* return_address);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  /// The recorded site as a number that is equal on all ranks of one build; 0 outside of such functions.
  static std::uint64_t current();
  /// The recorded site as text for addr2line and for people, "train+0x2f41 (main)". Empty outside of such functions.
  static std::string describe_current();

 private:
  bool is_outermost_;
};

}  // namespace hortator::detail
