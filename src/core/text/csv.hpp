#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::core {

/// Reads separated values character by character. A cell may be in quotes; in these a quote is written twice.
class CsvParser {
 public:
  enum class Event {
    text,        ///< the character belongs to the cell
    quote,       ///< it opens or closes a quoted cell, or is the first of two quotes that mean one
    cell_end,    ///< it is a separator
    record_end,  ///< it is the line break that ends a record
    fault        ///< text follows a closing quote
  };

  explicit CsvParser(char separator) : separator_(separator) {}

  bool is_quoted() const { return state_ == State::quoted; }  ///< whether the next character is within quotes
  void restart() { state_ = State::cell_begins; }             ///< the next character begins a record

  Event take(char c) {
    switch (state_) {
      case State::cell_begins:
        if (c == '"') return enter(State::quoted, Event::quote);
        state_ = State::bare;
        return take_outside_quotes(c);
      case State::quoted:
        return c == '"' ? enter(State::quote_in_quotes, Event::quote) : Event::text;
      case State::quote_in_quotes:
        if (c == '"') return enter(State::quoted, Event::text);
        state_ = State::cell_closed;
        [[fallthrough]];
      case State::cell_closed:
        if (c != separator_ && c != '\n' && c != '\r') return Event::fault;
        [[fallthrough]];
      case State::bare:
        return take_outside_quotes(c);
    }
    return Event::fault;
  }

 private:
  enum class State { cell_begins, bare, quoted, quote_in_quotes, cell_closed };

  Event enter(State state, Event event) {
    state_ = state;
    return event;
  }
  Event take_outside_quotes(char c) {
    if (c == separator_) return enter(State::cell_begins, Event::cell_end);
    if (c == '\n') return enter(State::cell_begins, Event::record_end);
    return Event::text;
  }

  char separator_;
  State state_ = State::cell_begins;
};

/// Returns the cells of the record at the beginning of `text`, without the line break, which may be "\r\n". The text
/// must have no text behind a closing quote.
std::vector<std::string> parse_csv_record(std::string_view text, char separator = ',');

}  // namespace hortator::core
