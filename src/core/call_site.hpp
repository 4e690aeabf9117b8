#pragma once

#include <hortator/detail/call_site.hpp>

namespace hortator {

using detail::CallSite;

/// The place of a call as text for addr2line and for people, "train+0x2f41 (main)". Empty if nothing is loaded there.
std::string describe_site(const void* return_address);

/// Hides the call site within its scope: ranks reach the calls there from different places.
class AnyCallSite {
 public:
  AnyCallSite();
  ~AnyCallSite();
  AnyCallSite(const AnyCallSite&) = delete;
  AnyCallSite& operator=(const AnyCallSite&) = delete;

 private:
  const void* before_;
};

}  // namespace hortator
