#include "core/text/page.hpp"

#include <algorithm>

#include "core/text/column.hpp"

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

}  // namespace hortator::core
