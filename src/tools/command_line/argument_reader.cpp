#include "tools/command_line/argument_reader.hpp"

#include <hortator/error.hpp>

namespace hortator::tools {

std::string ArgumentReader::value_of(const TypedOption& option) {
  if (option.value) return *option.value;
  if (!is_at_end()) return next();
  throw UsageError({.what = option.spelling + ": the value is missing"});
}

}  // namespace hortator::tools
