#include "data/files/csv_scanner.hpp"

#include "core/text/text.hpp"

namespace hortator::data {
namespace {
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
}

void CsvScanner::feed(std::string_view piece) {
  for (const char c : piece) {
    const bool in_mark = mark_seen_ == offset_ && mark_seen_ < byte_order_mark.size();
    if (in_mark && c == byte_order_mark[mark_seen_]) {
      if (++mark_seen_ == byte_order_mark.size()) {
        record_begin_ = offset_ + 1;
        parser_.restart();
        only_returns_ = true;
      } else {
        take(c);  // the file may begin with only a part of the mark
      }
    } else {
      take(c);
    }
    ++offset_;
  }
}

void CsvScanner::take(char c) {
  using Event = core::CsvParser::Event;
  if (c != '\r' && c != '\n') only_returns_ = false;
  const bool was_quoted = parser_.is_quoted();
  switch (parser_.take(c)) {
    case Event::text:
      if (c == '\n') ++line_;
      return;
    case Event::quote:
      if (!was_quoted) quote_line_ = line_;
      return;
    case Event::cell_end:
      ++cells_;
      return;
    case Event::record_end:
      return end_record();
    case Event::fault:
      throw CsvFault(line_, "text follows a closing quote (a quote in a cell is written twice)");
  }
}

// The character at offset_ is the line break that ends the record, or the end of the text.
void CsvScanner::end_record() {
  if (!only_returns_) {
    if (begins_.empty()) first_cells_ = cells_;
    if (cells_ != first_cells_) {
      throw CsvFault(record_line_, text::concat("the row has ", text::count(cells_, "column"), ", the first line has ",
                                                first_cells_));
    }
    begins_.push_back(record_begin_);
  }
  ++line_;
  record_line_ = line_;
  record_begin_ = offset_ + 1;
  cells_ = 1;
  only_returns_ = true;
}

void CsvScanner::finish() {
  if (parser_.is_quoted()) throw CsvFault(quote_line_, "a quote that opens here is never closed");
  end_record();
}

}  // namespace hortator::data
