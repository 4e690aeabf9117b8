#pragma once

#include <hortator/parallel/mesh.hpp>

#include "parallel/context/sequence_layout.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::parallel {

/// While it lives, every scaled_dot_product_attention of this process that an operator of LibTorch or a program calls
/// is context_attention() over a sequence that `layout` divides over `group`, in forward, and in recomputation during
/// backward. Other operators are not affected. One at a time. The first one also tests whether this LibTorch allows it,
/// and throws Error if not.
class DividedAttention {
 public:
  /// `group` must outlive this.
  DividedAttention(const SequenceLayout& layout, const RankGroup& group, ContextAttention form);
  ~DividedAttention();
  DividedAttention(const DividedAttention&) = delete;
  DividedAttention& operator=(const DividedAttention&) = delete;

  const SequenceLayout& layout() const { return layout_; }
  const RankGroup& group() const { return group_; }
  ContextAttention form() const { return form_; }

  /// Whether models have computed within this scope, and none has called scaled_dot_product_attention.
  bool saw_no_attention() const;

 private:
  SequenceLayout layout_;
  const RankGroup& group_;
  ContextAttention form_;
  int intercepted_before_ = 0;
  int forwards_before_ = 0;
};

/// Called before each forward of a prepared model.
void count_forward();

}  // namespace hortator::parallel
