#pragma once

#include <string>
#include <utility>

/// Text for a terminal, line by line.
namespace hortator::core {

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
  /// The columns that are still free on this line.
  int room() const { return columns_ - used_; }
  std::string text() && { return std::move(text_); }

 private:
  int columns_;
  bool has_colour_;
  std::string text_;
  int used_ = 0;
};

}  // namespace hortator::core
