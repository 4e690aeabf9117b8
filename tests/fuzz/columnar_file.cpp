// Fuzzes the reading of Parquet and Arrow files: any file is refused, or has rows.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/datasets/arrow_rows.hpp>
#include <hortator/error.hpp>
#include <vector>

#include "formats/columns/columnar_file.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

/// The first rows of each column of its own, because one that cannot be read refuses all.
void use(const std::filesystem::path& file, const std::string& column) {
  try {
    const ArrowRows rows(file, {.columns = {column}, .null_value = 0});
    if (rows.size() < 1 || rows.chunk_length() < 1 || rows.chunk_length() > rows.size()) __builtin_trap();
    std::vector<std::int64_t> numbers = {0, rows.size() / 2, rows.size() - 1};
    for (std::int64_t row = 0; row < std::min<std::int64_t>(rows.size(), 20); ++row) numbers.push_back(row);
    for (const auto row : numbers) {
      const auto found = rows.get(row);
      if (found.tensors.size() + found.texts.size() != 1) __builtin_trap();
    }
  } catch (const Error&) {
  }
}

}  // namespace

FUZZ_TARGET(columnar_file) {
  static const auto file = std::filesystem::current_path() / "fuzzed.parquet";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  std::vector<std::string> names;
  try {
    names = formats::column_names(file);
  } catch (const Error&) {
    return 0;
  }
  if (names.size() > 8) names.resize(8);
  for (const auto& name : names) use(file, name);
  return 0;
}
