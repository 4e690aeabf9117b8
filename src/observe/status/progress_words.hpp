#pragma once

#include <string>

/// How numbers are told to those who watch a loop.
namespace hortator::observe {

/// "450", "0.1235"
std::string value_text(double value);

/// "12.3/s"; of what takes longer than a second, "1.5 s each".
std::string rate_text(double per_second);

/// "[=====>    ]": a share from 0 to 1, `width` columns between the brackets.
std::string bar(double share, int width);

}  // namespace hortator::observe
