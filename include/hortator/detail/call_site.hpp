#pragma once

#include <cstdint>
#include <hortator/export.hpp>
#include <string>

namespace hortator::detail {

/// Where in the user's program a public verb was called, for as long as that call lasts. Verbs that all ranks must call
/// from the same place begin with one: `const CallSite site(__builtin_return_address(0));`. The outermost counts. Verbs
/// that are templates are [[gnu::noinline]] for it: the address is their caller's.
class HORTATOR_API CallSite {
 public:
  explicit CallSite(const void* return_address);
  ~CallSite();
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

  /// The same on all ranks of one build, wherever the program was loaded; 0 outside of such verbs.
  static std::uint64_t current();
  /// "train+0x2f41 (main)": for addr2line, and for people. Empty outside of such verbs.
  static std::string describe_current();

 private:
  bool is_outermost_;
};

}  // namespace hortator::detail
