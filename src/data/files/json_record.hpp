#pragma once

#include <hortator/datasets/table.hpp>
#include <span>
#include <stdexcept>
#include <string_view>

namespace hortator::data {

/// What is wrong with a line; where it stands is the caller's to say.
class JsonLineFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// These members of the JSON object that a line holds.
TableRow parse_json_record(std::string_view line, std::span<const TableColumn> members);

}  // namespace hortator::data
