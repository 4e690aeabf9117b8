#pragma once

#include <string>

/// The numbers of a loop as text.
namespace hortator::observe {

/// "450", "0.1235"
std::string value_text(double value);

/// "12.3/s"; below one per second "1.5 s each".
std::string rate_text(double per_second);

/// "[=====>    ]": `share` is from 0 to 1; `width` columns between the brackets.
std::string bar(double share, int width);

}  // namespace hortator::observe
