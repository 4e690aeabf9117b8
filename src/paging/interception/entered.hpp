#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "paging/interception/claims.hpp"
#include "paging/interception/paged_key.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::paging {

/// Keeps storages present for one operator; the destructor leaves them.
class Entered {
 public:
  Entered() = default;
  ~Entered() {
    for (const auto& claim : claims_) claim.provider->leave(claim.number);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  void enter(const at::Tensor& tensor, Access access) {
    if (!tensor.defined() || !carries_key(tensor)) return;
    auto claim = claim_of(tensor);
    if (!claim) return require_memory(tensor.storage());
    claim.provider->enter(claim.number, access);
    claims_.push_back(std::move(claim));
  }

 private:
  c10::SmallVector<Claim, 4> claims_;
};

}  // namespace hortator::paging
