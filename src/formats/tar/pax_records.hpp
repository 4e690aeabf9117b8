#pragma once

#include <map>
#include <string>
#include <string_view>

namespace hortator::formats {

/// The records of a pax header, "<length> <key>=<value>\n" one after the other. Throws TarFault. Pure.
std::map<std::string, std::string> parse_pax_records(std::string_view text);

}  // namespace hortator::formats
