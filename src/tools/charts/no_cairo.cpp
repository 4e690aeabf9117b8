#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "tools/charts/canvas.hpp"

namespace hortator::tools {

bool has_cairo() { return false; }

std::string draw_with_cairo(const std::string& file, double, double, const std::function<void(Canvas&)>&) {
  throw UsageError(
      {.what = text::concat("--output: ", text::quote(file), " needs Cairo, which is missing in this build"),
       .why = "PNG and PDF charts are drawn by Cairo; SVG charts need no library",
       .hint = "use .svg, or build with libcairo2-dev (Debian, Ubuntu) or cairo-devel (Rocky)"});
}

}  // namespace hortator::tools
