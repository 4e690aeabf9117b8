#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// Attributes of groups and datasets hold a file's small values. Strings are UTF-8 of fixed length.
using SmallValue = std::variant<std::int64_t, double, std::string>;

void write_attribute(hid_t object, const std::string& name, const SmallValue& value);

/// Throws, naming the attribute, if it is missing or of a type that write_attribute() does not write.
SmallValue read_attribute(hid_t object, const std::string& name);

bool has_attribute(hid_t object, const std::string& name);
std::vector<std::string> attribute_names(hid_t object);

}  // namespace hortator::formats
