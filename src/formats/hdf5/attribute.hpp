#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// The small values of a file: each an attribute of a group or dataset. Texts are UTF-8 of fixed length.
using SmallValue = std::variant<std::int64_t, double, std::string>;

void write_attribute(hid_t object, const std::string& name, const SmallValue& value);

/// Throws, naming the attribute, when it is absent or of a kind that write_attribute() does not make.
SmallValue read_attribute(hid_t object, const std::string& name);

bool has_attribute(hid_t object, const std::string& name);
std::vector<std::string> attribute_names(hid_t object);

}  // namespace hortator::formats
