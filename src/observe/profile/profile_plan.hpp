#pragma once

#include <cstdint>
#include <hortator/training/profile.hpp>

namespace hortator::observe {

/// What the profiler does in one step.
enum class ProfileAction { none, warm_up, record, record_last };

/// The action in step number `step`, counted from 0. Without a schedule every step is recorded, and none is the last.
ProfileAction profile_action(const std::optional<ProfileSchedule>& schedule, std::int64_t step);

/// Throws UsageError for invalid options.
void check(const ProfileOptions& options);

}  // namespace hortator::observe
