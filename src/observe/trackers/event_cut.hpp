#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Removes later events from the files of an earlier run. A restart event (event.hpp) is not enough: some readers
/// ignore it, and TensorBoard itself respects it for numbers but not for texts.
namespace hortator::observe {

/// The step of an event that event.hpp made; nothing for an event without one.
std::optional<std::int64_t> step_of_event(std::string_view event);

/// The complete records of an event file, without those of steps after `last_step`.
std::string without_later(std::string_view records, std::int64_t last_step);

/// Applies without_later() to all event files of a folder. Throws Error when a file cannot be written.
void cut_events(const std::filesystem::path& folder, std::int64_t last_step);

/// For a run that starts from scratch: renames the folder's event files so that no reader opens them. Files that were
/// put aside before are removed.
void put_events_aside(const std::filesystem::path& folder);

}  // namespace hortator::observe
