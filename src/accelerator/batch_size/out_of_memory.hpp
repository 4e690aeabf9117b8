#pragma once

#include <exception>
#include <string_view>

namespace hortator::accelerator {

/// Do these words speak of memory, by the reference's list? Upper and lower case count.
bool speaks_of_memory(std::string_view words);

/// Is it an exception of memory that there is not enough of, by its type or its words? Also one that is nested in it.
bool is_out_of_memory(const std::exception_ptr& thrown);

}  // namespace hortator::accelerator
