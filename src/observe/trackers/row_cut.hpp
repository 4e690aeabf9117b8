#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

/// Handling of the rows that an earlier run has left in a file.
namespace hortator::observe {

/// Returns the step of a row; nothing for a row that cannot be read.
using StepOf = std::function<std::optional<std::int64_t>(std::string_view row)>;

enum class FirstRow { data, heading };

/// Removes the rows of steps after `last_step`, unreadable rows and an unfinished last row. A heading stays. Throws
/// Error when the file cannot be written.
void cut_rows(const std::filesystem::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step);

/// For a run that starts from scratch: renames the file to FILE.old, replacing an earlier one.
void put_aside(const std::filesystem::path& file);

}  // namespace hortator::observe
