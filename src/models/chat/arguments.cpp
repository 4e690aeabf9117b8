#include "models/chat/arguments.hpp"

namespace hortator::models::chat {

Value argument(const CallArguments& arguments, std::size_t at, const std::string& name) {
  if (at < arguments.positional.size()) return arguments.positional[at];
  const auto found = arguments.named.find(name);
  return found == arguments.named.end() ? Value() : found->second;
}

std::string string_argument(const CallArguments& arguments, std::size_t at, const std::string& name,
                            const std::string& absent) {
  const auto value = argument(arguments, at, name);
  return value.is_defined && !(value.is_plain() && value.json.is_null()) ? text_of(value) : absent;
}

std::int64_t count_argument(const CallArguments& arguments, std::size_t at, const std::string& name) {
  const auto value = argument(arguments, at, name);
  return value.is_defined ? integer_of(value, name.c_str()) : -1;
}

}  // namespace hortator::models::chat
