#pragma once

#include <hortator/detail/call_site.hpp>

namespace hortator {

using detail::CallSite;

/// What is called in its scope has no place: ranks come to it from different ones.
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
