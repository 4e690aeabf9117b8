#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::core {

/// The paths of the loaded libraries whose file names begin with `prefix` ("libmpi.so"), in loading order: the
/// libraries that really run, whatever was configured.
std::vector<std::string> loaded_libraries(std::string_view prefix);

}  // namespace hortator::core
