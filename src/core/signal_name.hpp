#pragma once

#include <string>

namespace hortator::core {

/// "SIGKILL" for 9; a description for signals that have no common name.
std::string signal_name(int signal);

}  // namespace hortator::core
