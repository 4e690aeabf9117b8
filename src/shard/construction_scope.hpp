#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "shard/paged_key.hpp"
#include "shard/recording.hpp"
#include "shard/recycling_allocator.hpp"

namespace hortator::shard {

/// While it lives, what this thread constructs is recorded in place of being done. May lie within another one.
class ConstructionScope {
 public:
  explicit ConstructionScope(Recording::Order order);
  ~ConstructionScope();
  ConstructionScope(const ConstructionScope&) = delete;
  ConstructionScope& operator=(const ConstructionScope&) = delete;

 private:
  std::shared_ptr<Recording> recording_;  ///< afterwards its tensors own it
  Recording* former_;
  RecyclingAllocator blocks_{0};  ///< what comes and goes at once leaves no holes
  c10::impl::IncludeDispatchKeyGuard on_;
};

}  // namespace hortator::shard
