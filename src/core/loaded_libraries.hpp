#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::core {

/// Where the libraries whose file names begin so ("libmpi.so") were loaded from, in the order of their loading: what
/// really runs, whatever was configured.
std::vector<std::string> loaded_libraries(std::string_view beginning);

}  // namespace hortator::core
