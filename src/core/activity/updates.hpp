#pragma once

#include <cstdint>

/// The number of updates that this process has made, for the record of its end. Any thread may read it.
namespace hortator::activity {

/// Notes one more update.
void count_update();
/// Notes the updates of the runs that this one has resumed.
void note_updates_before(std::int64_t updates);
/// All of them: those before and those of this process.
std::int64_t updates();

}  // namespace hortator::activity
