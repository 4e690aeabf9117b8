#pragma once

#include <cstdint>
#include <string>

#include "models/chat/program.hpp"

namespace hortator::models::chat {

/// An argument by place or name; undefined if it is not given.
Value argument(const CallArguments& arguments, std::size_t at, const std::string& name);
/// The same as text; `absent` if it is not given or none.
std::string string_argument(const CallArguments& arguments, std::size_t at, const std::string& name,
                            const std::string& absent);
/// The same as a whole number; -1 if it is not given.
std::int64_t count_argument(const CallArguments& arguments, std::size_t at, const std::string& name);

}  // namespace hortator::models::chat
