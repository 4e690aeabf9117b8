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
        state_ = State::cell_begins;
        only_returns_ = true;
      } else {
        take(c);  // it may yet be none
      }
    } else {
      take(c);
    }
    ++offset_;
  }
}

void CsvScanner::take(char c) {
  if (c != '\r' && c != '\n') only_returns_ = false;
  switch (state_) {
    case State::cell_begins:
      if (c == '"') {
        state_ = State::quoted;
        quote_line_ = line_;
        return;
      }
      state_ = State::bare;
      [[fallthrough]];
    case State::bare:
      if (c == separator_) return end_cell();
      if (c == '\n') return end_record();
      return;
    case State::quoted:
      if (c == '"') state_ = State::quote_in_quotes;
      if (c == '\n') ++line_;
      return;
    case State::quote_in_quotes:
      if (c == '"') {
        state_ = State::quoted;
        return;
      }
      state_ = State::cell_closed;
      [[fallthrough]];
    case State::cell_closed:
      if (c == separator_) return end_cell();
      if (c == '\n') return end_record();
      if (c != '\r') throw CsvFault(line_, "text follows a closing quote (a quote in a cell is written twice)");
  }
}

void CsvScanner::end_cell() {
  ++cells_;
  state_ = State::cell_begins;
}

// The letter at offset_ is the line's end.
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
  state_ = State::cell_begins;
}

void CsvScanner::finish() {
  if (state_ == State::quoted) throw CsvFault(quote_line_, "a quote that opens here is never closed");
  end_record();
}

std::vector<std::string> parse_csv_record(std::string_view text, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  bool begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c != '"' || doubled) cells.back() += c;
      if (doubled) ++i;
      if (c == '"' && !doubled) quoted = false;
    } else if (c == '"' && begins) {
      quoted = true;
      begins = false;
    } else if (c == separator) {
      cells.emplace_back();
      begins = true;
    } else if (c == '\n' || (c == '\r' && (i + 1 == text.size() || text[i + 1] == '\n'))) {
      break;
    } else {
      cells.back() += c;
      begins = false;
    }
  }
  return cells;
}

}  // namespace hortator::data
