#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::data {

/// What is wrong with a file of separated values, and in which line.
class CsvFault : public std::runtime_error {
 public:
  CsvFault(std::int64_t line, const std::string& words) : std::runtime_error(words), line_(line) {}
  std::int64_t line() const { return line_; }

 private:
  std::int64_t line_;
};

/// Finds the records of separated values in a text that comes piece by piece, and counts their cells. A byte order mark
/// at its beginning is left out, and so are empty lines.
class CsvScanner {
 public:
  explicit CsvScanner(char separator) : separator_(separator) {}

  /// Throws CsvFault for text behind a closing quote, and for a record with another number of cells than the first one.
  void feed(std::string_view piece);
  /// The text is at its end. Throws CsvFault within quotes.
  void finish();

  const std::vector<std::uint64_t>& begins() const& {
    return begins_;
  }  ///< of the records, the first one is the header
  std::vector<std::uint64_t> begins() && { return std::move(begins_); }

 private:
  enum class State { cell_begins, bare, quoted, quote_in_quotes, cell_closed };

  void take(char c);
  void end_cell();
  void end_record();

  char separator_;
  State state_ = State::cell_begins;
  std::uint64_t offset_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 1;
  std::int64_t quote_line_ = 0;
  std::uint64_t record_begin_ = 0;
  std::size_t mark_seen_ = 0;
  bool only_returns_ = true;  ///< the record has had nothing but a carriage return
  std::int64_t cells_ = 1;
  std::int64_t first_cells_ = 0;
  std::vector<std::uint64_t> begins_;
};

/// The cells of the record that `text` begins with; the scanner has been through it.
std::vector<std::string> parse_csv_record(std::string_view text, char separator);

}  // namespace hortator::data
