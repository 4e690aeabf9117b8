#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::parallel {

/// Whether the parameter, or a module that it is in, is among the names, in which * stands for any text.
bool is_among(const std::vector<std::string>& names, const std::string& parameter);

/// Throws UsageError, which names `option`, for a name that is none of a parameter or module.
void require_known(std::string_view option, const std::vector<std::string>& names,
                   const std::vector<std::string>& parameters);

}  // namespace hortator::parallel
