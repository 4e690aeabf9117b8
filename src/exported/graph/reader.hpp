#pragma once

#include <string_view>

#include "exported/graph/program.hpp"

namespace hortator::exported {

/// Reads the JSON text of an exported program (torch._export.serde.schema, version 8). Throws ExportFault, naming the
/// position, if it is damaged or has what is not supported. Operators are not looked up.
Program parse_program(std::string_view json);

}  // namespace hortator::exported
