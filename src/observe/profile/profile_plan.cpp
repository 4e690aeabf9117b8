#include "observe/profile/profile_plan.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::observe {

ProfileAction profile_action(const std::optional<ProfileSchedule>& schedule, std::int64_t step) {
  if (!schedule) return ProfileAction::record;
  const auto since = step - schedule->skip_first;
  if (since < 0) return ProfileAction::none;
  const auto cycle = schedule->wait + schedule->warmup + schedule->active;
  if (schedule->repeat > 0 && since / cycle >= schedule->repeat) return ProfileAction::none;
  const auto position = since % cycle;
  if (position < schedule->wait) return ProfileAction::none;
  if (position < schedule->wait + schedule->warmup) return ProfileAction::warm_up;
  return position + 1 == cycle ? ProfileAction::record_last : ProfileAction::record;
}

void check(const ProfileOptions& options) {
  if (!options.schedule_option) return;
  const auto& schedule = *options.schedule_option;
  const struct {
    const char* name;
    std::int64_t value;
    std::int64_t min;
  } fields[] = {{"wait", schedule.wait, 0},
                {"warmup", schedule.warmup, 0},
                {"active", schedule.active, 1},
                {"repeat", schedule.repeat, 0},
                {"skip_first", schedule.skip_first, 0}};
  for (const auto& [name, value, min] : fields) {
    if (value >= min) continue;
    throw UsageError({.what = text::concat("profile: schedule_option.", name, ": expected a number of steps from ", min,
                                           ", got ", value)});
  }
}

}  // namespace hortator::observe
