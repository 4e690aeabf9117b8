#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

/// What becomes of the rows that an earlier run has left in a file.
namespace hortator::observe {

/// Of a row: the step that it belongs to; nothing for one that cannot be read.
using StepOf = std::function<std::optional<std::int64_t>(std::string_view row)>;

enum class FirstRow { data, heading };

/// Takes out the rows of later steps than `last_step`, those that cannot be read, and a last one that was never
/// finished. A heading stays.
void cut_rows(const std::filesystem::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step);

/// The run begins anew: the file is called FILE.old from now on, in place of one before it.
void put_aside(const std::filesystem::path& file);

}  // namespace hortator::observe
