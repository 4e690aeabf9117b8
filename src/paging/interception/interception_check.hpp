#pragma once

namespace hortator::paging {

/// Tries out with a small tensor that operators come to us before they read, in forward and backward, that views
/// inherit the key and results do not. Throws Error, with what failed, if this LibTorch does otherwise.
void check_interception();

}  // namespace hortator::paging
