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
  const auto place = since % cycle;
  if (place < schedule->wait) return ProfileAction::none;
  if (place < schedule->wait + schedule->warmup) return ProfileAction::warm_up;
  return place + 1 == cycle ? ProfileAction::record_last : ProfileAction::record;
}

void check(const ProfileOptions& options) {
  if (!options.schedule_option) return;
  const auto& schedule = *options.schedule_option;
  const struct {
    const char* name;
    std::int64_t value;
    std::int64_t least;
  } fields[] = {{"wait", schedule.wait, 0},
                {"warmup", schedule.warmup, 0},
                {"active", schedule.active, 1},
                {"repeat", schedule.repeat, 0},
                {"skip_first", schedule.skip_first, 0}};
  for (const auto& [name, value, least] : fields) {
    if (value >= least) continue;
    throw UsageError({.what = text::concat("profile: schedule_option.", name, " is ", value),
                      .why = "it is a number of steps",
                      .hint = text::concat("use ", least, " or more")});
  }
}

}  // namespace hortator::observe
