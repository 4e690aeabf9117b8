// Fuzzes the readers of CSV and TSV files: any file is refused, or has rows of equal length; where a text is divided
// while it is fed does not matter.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/datasets/csv_rows.hpp>
#include <hortator/error.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "data/files/csv_scanner.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

std::optional<std::vector<std::uint64_t>> records_of(std::string_view text, std::size_t piece) {
  data::CsvScanner scanner(',');
  try {
    for (std::size_t at = 0; at < text.size(); at += piece) scanner.feed(text.substr(at, piece));
    scanner.finish();
    return scanner.begins();
  } catch (const data::CsvFault& fault) {
    if (fault.line() < 1) __builtin_trap();
    return {};
  }
}

void read_rows(const std::filesystem::path& file, const CsvOptions& options) {
  try {
    const CsvRows rows(file, options);
    for (std::int64_t row = 0; row < rows.size(); ++row) {
      try {
        rows.get(row);
      } catch (const Error&) {  // a cell that is not a number: the next row may have others
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(separated_values) {
  static const auto folder = std::filesystem::current_path();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t piece = 1 + data[0] % 16;
  if (records_of(text, piece) != records_of(text, std::max<std::size_t>(1, text.size()))) __builtin_trap();

  const auto file = folder / "fuzzed.csv";
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  read_rows(file, {});
  read_rows(file, {.columns = {{"x", ColumnType::float32}, {"name", ColumnType::text}, {"id", ColumnType::int64}}});
  return 0;
}
