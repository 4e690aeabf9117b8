#pragma once

#include <exception>
#include <string_view>

namespace hortator::accelerator {

/// Whether the message says that memory ran out, by Hugging Face Accelerate's list. Case-sensitive.
bool speaks_of_memory(std::string_view message);

/// Whether an exception, or one nested in it, means that memory ran out, by its type or its message.
bool is_out_of_memory(const std::exception_ptr& thrown);

}  // namespace hortator::accelerator
