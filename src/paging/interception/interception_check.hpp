#pragma once

namespace hortator::paging {

/// Tests with a small tensor that operators are intercepted before they read, in forward and backward, that views
/// inherit the key, and that results do not. Throws Error with what failed.
void check_interception();

}  // namespace hortator::paging
