#pragma once

#include <cstdint>
#include <hortator/training/profile.hpp>

namespace hortator::observe {

/// What the profiler does in one step.
enum class ProfileAction { none, warm_up, record, record_last };

/// In step number `step`, from 0 on. Without a schedule every step is recorded, and none is the last.
ProfileAction profile_action(const std::optional<ProfileSchedule>& schedule, std::int64_t step);

/// Throws unless the options have a meaning.
void check(const ProfileOptions& options);

}  // namespace hortator::observe
