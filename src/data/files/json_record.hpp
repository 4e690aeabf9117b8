#pragma once

#include <hortator/datasets/table.hpp>
#include <span>
#include <stdexcept>
#include <string_view>

namespace hortator::data {

/// An error in a line. The caller adds the line's position.
class JsonLineFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads these members of the JSON object in `line`. Throws JsonLineFault.
TableRow parse_json_record(std::string_view line, std::span<const TableColumn> members);

}  // namespace hortator::data
