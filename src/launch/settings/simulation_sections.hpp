#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace hortator::launching {

/// Keys of a settings file that simulation codes read (hortator_begin). `hortator launch` skips them.
inline constexpr std::array<std::string_view, 8> simulation_sections = {
    "models", "buffers", "checkpoints", "trackers", "seed", "find_unused_parameters", "on_nonfinite", "model_threads"};

inline bool is_simulation_section(std::string_view key) {
  return std::ranges::find(simulation_sections, key) != simulation_sections.end();
}

}  // namespace hortator::launching
