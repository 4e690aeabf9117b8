#pragma once

namespace hortator::parallel {

/// From the first call on, aten::batch_norm of layers in MarkedNorms computes as SyncBatchNorm does; other operators
/// are not affected. The first call also tests whether this LibTorch allows it, and throws Error if not.
void intercept_marked_norms();

}  // namespace hortator::parallel
