#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Text on a terminal, where UTF-8 characters take one column each and escape sequences none.
namespace hortator::core {

int width_of(std::string_view text);

/// Cuts the text to `columns`. The text must not contain escape sequences.
std::string cut(std::string text, int columns);

/// Puts the text on one line: control characters become spaces.
std::string one_line(std::string text);

enum class Ink { plain, faint, good, bad, warning, bold };

/// Builds lines that are never wider than the terminal. Most are a row: a label, then text.
class Page {
 public:
  static constexpr int label_columns = 11;

  Page(int columns, bool has_colour) : columns_(columns), has_colour_(has_colour) {}

  void add(const std::string& text, Ink ink = Ink::plain);
  void label(std::string name);
  void end_line();
  void row(const std::string& name, const std::string& text, Ink ink = Ink::plain);
  /// A row over as many lines as the text needs, broken at its blanks.
  void long_row(const std::string& name, const std::string& text, Ink ink = Ink::plain);
  /// The columns that are still free on this line.
  int room() const { return columns_ - used_; }
  std::string text() && { return std::move(text_); }

 private:
  int columns_;
  bool has_colour_;
  std::string text_;
  int used_ = 0;
};

/// Plots the values as one character each, scaled between minimum and maximum; empty for fewer than two values.
std::string sparkline(const std::vector<double>& values, bool utf8);

}  // namespace hortator::core
