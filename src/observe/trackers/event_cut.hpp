#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// What becomes of the event files that an earlier run has left. Some of what reads them heeds the word that a run went
/// back (track/event), some does not, and TensorBoard itself does for numbers and not for texts.
namespace hortator::observe {

/// Of an event that event.hpp made; nothing for those that have none.
std::optional<std::int64_t> step_of_event(std::string_view event);

/// The records of an event file up to where it breaks off, without those of later steps than `last_step`.
std::string without_later(std::string_view records, std::int64_t last_step);

/// That done to all event files of a folder.
void cut_events(const std::filesystem::path& folder, std::int64_t last_step);

/// The run begins anew: the folder's event files get names that nobody takes for such, in place of those before them.
void put_events_aside(const std::filesystem::path& folder);

}  // namespace hortator::observe
