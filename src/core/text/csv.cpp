#include "core/text/csv.hpp"

namespace hortator::core {

std::vector<std::string> parse_csv_record(std::string_view text, char separator) {
  std::vector<std::string> cells(1);
  CsvParser parser(separator);
  bool ends_in_return = false;  // outside quotes
  for (const char c : text) {
    const bool is_quoted = parser.is_quoted();
    const auto event = parser.take(c);
    if (event == CsvParser::Event::record_end) break;
    if (event == CsvParser::Event::text) cells.back() += c;
    if (event == CsvParser::Event::cell_end) cells.emplace_back();
    ends_in_return = event == CsvParser::Event::text && c == '\r' && !is_quoted;
  }
  if (ends_in_return) cells.back().pop_back();
  return cells;
}

}  // namespace hortator::core
