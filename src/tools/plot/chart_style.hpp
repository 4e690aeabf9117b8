#pragma once

#include "tools/plot/canvas.hpp"

/// The style of all charts, in pixels.
namespace hortator::tools {

inline constexpr double text_size = 12;
inline constexpr double title_size = 14;
inline constexpr double margin = 14;
inline constexpr double dot_radius = 3.2;

inline constexpr Colour ink = {40, 40, 40};
inline constexpr Colour mark_colour = {120, 120, 120};

}  // namespace hortator::tools
