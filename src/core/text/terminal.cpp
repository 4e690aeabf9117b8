#include "core/text/terminal.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

namespace hortator::core {
namespace {

const char* escape_of(Ink ink) {
  switch (ink) {
    case Ink::faint:
      return "\x1b[2m";
    case Ink::good:
      return "\x1b[32m";
    case Ink::bad:
      return "\x1b[31m";
    case Ink::warning:
      return "\x1b[33m";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::plain:
      break;
  }
  return "";
}

}  // namespace

int width_of(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if (!text::continues_character(text[i])) {
      ++width;
    }
  }
  return width;
}

std::string cut(std::string text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!text::continues_character(text[i]) && seen++ == columns) {
      text.resize(i);
      break;
    }
  }
  return text;
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

void Page::add(const std::string& text, Ink ink) {
  const auto fitting = cut(one_line(text), std::max(room(), 0));
  used_ += width_of(fitting);
  const bool is_plain = !has_colour_ || ink == Ink::plain || fitting.empty();
  text_ += is_plain ? fitting : escape_of(ink) + fitting + "\x1b[0m";
}

void Page::label(std::string name) {
  name.resize(label_columns, ' ');
  add(name, Ink::faint);
}

void Page::end_line() {
  text_ += '\n';
  used_ = 0;
}

void Page::row(const std::string& name, const std::string& text, Ink ink) {
  label(name);
  add(text, ink);
  end_line();
}

void Page::long_row(const std::string& name, const std::string& text, Ink ink) {
  std::string line;
  auto heading = name;
  const auto end_of_row = [&] { row(std::exchange(heading, ""), std::exchange(line, ""), ink); };
  for (const auto& part : text::split(one_line(text), ' ')) {
    const auto longer = line.empty() ? part : line + ' ' + part;
    if (!line.empty() && width_of(longer) > columns_ - label_columns) {
      end_of_row();
      line = part;
    } else {
      line = longer;
    }
  }
  end_of_row();
}

std::string sparkline(const std::vector<double>& values, bool utf8) {
  static constexpr std::array<const char*, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> marks = {"_", ".", "-", "~", "=", "+", "*", "#"};
  if (values.size() < 2) return "";
  const auto [min, max] = std::ranges::minmax_element(values);
  const double span = *max - *min;
  std::string line;
  for (const double value : values) {
    const double height = span > 0 ? (value - *min) / span : 0.5;
    const auto level = std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7);
    line += utf8 ? blocks[level] : marks[level];
  }
  return line;
}

}  // namespace hortator::core
