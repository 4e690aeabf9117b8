#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Values of options of schedulers and mpirun, as the user typed them.
namespace hortator::tools {

/// "--nice=5" for "--nice", "--begin=x" for "--begin=".
std::string with_value(std::string_view option, const std::string& value, const char* separator = "=");

/// NAME=value for each variable of PBS's `-v` (a list) or Open MPI's `-x` (one); a name without a value stands for that
/// of this shell. Throws UsageError if that is not set.
std::vector<std::string> assignments_of(const std::string& value, const std::string& typed, bool is_list);

/// "BEGIN,END,FAIL" for PBS's letters "abe". Throws UsageError for other letters.
std::string mail_types_of(const std::string& letters, const std::string& typed);

}  // namespace hortator::tools
