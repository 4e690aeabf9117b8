#pragma once

namespace hortator::runtime {

/// Throws UsageError unless HORTATOR_LOG_LEVEL and ACCELERATE_LOG_LEVEL are unset or levels.
void check_log_level();

}  // namespace hortator::runtime
