#pragma once

#include <functional>
#include <hortator/datasets/table.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::data {

/// An error in a line. The caller adds the line's position.
class JsonLineFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws UsageError unless there are members, each named once.
void require_members(const std::vector<TableColumn>& members);

/// Reads these members of the JSON object in `line`. Throws JsonLineFault.
TableRow parse_json_record(std::string_view line, std::span<const TableColumn> members);

/// The tensors of this member, stacked. Throws FileError if their shapes differ, with the text that `position_text`
/// returns for a row's number.
at::Tensor stack_member(const std::vector<TableRow>& rows, const std::string& member,
                        const std::function<std::string(std::size_t)>& position_text);

}  // namespace hortator::data
