#pragma once

#include <hortator/detail/call_site.hpp>

namespace hortator {

using detail::CallSite;

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
