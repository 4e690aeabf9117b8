#pragma once

#include <functional>
#include <string>

#include "tools/plot/canvas.hpp"

namespace hortator::tools {

/// Whether this build can draw PNG and PDF files.
bool has_cairo();

/// The content of a PNG (where `file` ends in .png) or PDF file, drawn by `draw`. Throws UsageError in a build without
/// Cairo, and Error when Cairo reports one.
std::string draw_with_cairo(const std::string& file, double width, double height,
                            const std::function<void(Canvas&)>& draw);

}  // namespace hortator::tools
