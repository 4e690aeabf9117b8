#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/csv.hpp"

namespace hortator::data {

/// An error in a file of separated values, with the number of its line.
class CsvFault : public std::runtime_error {
 public:
  CsvFault(std::int64_t line, const std::string& problem) : std::runtime_error(problem), line_(line) {}
  std::int64_t line() const { return line_; }

 private:
  std::int64_t line_;
};

/// Finds where the records of separated values begin, in a text that is fed in pieces, and checks their number of
/// cells. Skips a byte order mark at the beginning, and empty lines.
class CsvScanner {
 public:
  explicit CsvScanner(char separator) : parser_(separator) {}

  /// Throws CsvFault for text behind a closing quote, and for a record whose number of cells differs from the first
  /// one's.
  void feed(std::string_view piece);
  /// Ends the text. Throws CsvFault within quotes.
  void finish();

  /// The offset of each record; the first one is the header.
  const std::vector<std::uint64_t>& begins() const& { return begins_; }
  std::vector<std::uint64_t> begins() && { return std::move(begins_); }

 private:
  void take(char c);
  void end_record();

  core::CsvParser parser_;
  std::uint64_t offset_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 1;
  std::int64_t quote_line_ = 0;
  std::uint64_t record_begin_ = 0;
  std::size_t mark_seen_ = 0;
  bool only_returns_ = true;  ///< whether the record has had no characters but carriage returns so far
  std::int64_t cells_ = 1;
  std::int64_t first_cells_ = 0;
  std::vector<std::uint64_t> begins_;
};

}  // namespace hortator::data
