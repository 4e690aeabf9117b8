#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "machine/memory/recycling_allocator.hpp"
#include "paging/deferred/recording.hpp"
#include "paging/interception/paged_key.hpp"

namespace hortator::paging {

/// While it lives, what this thread constructs is recorded instead of executed. Scopes nest.
class ConstructionScope {
 public:
  explicit ConstructionScope(Recording::Order order);
  ~ConstructionScope();
  ConstructionScope(const ConstructionScope&) = delete;
  ConstructionScope& operator=(const ConstructionScope&) = delete;

 private:
  std::shared_ptr<Recording> recording_;  ///< after the scope its tensors own it
  Recording* former_;
  machine::RecyclingAllocator blocks_{0};  ///< temporary memory leaves no holes
  c10::impl::IncludeDispatchKeyGuard on_;
};

}  // namespace hortator::paging
