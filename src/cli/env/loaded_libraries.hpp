#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::cli::env {

/// Where the libraries whose file names begin so ("libmpi.so") were loaded from: what really runs, whatever was
/// configured.
std::map<std::string, std::string> loaded_libraries(const std::vector<std::string_view>& beginnings);

}  // namespace hortator::cli::env
