#include "models/tokenizer/regex/pattern.hpp"

#include <unicode/uregex.h>

#include <cstdint>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "models/tokenizer/regex/oniguruma.hpp"

namespace hortator::models {

struct Pattern::Compiled {
  URegularExpression* expression = nullptr;
  Compiled() = default;
  ~Compiled() { uregex_close(expression); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

Pattern::Pattern(const std::string& expression) {
  const auto translated = icu_expression(expression);
  const std::u16string utf16(translated.begin(), translated.end());  // ASCII
  UErrorCode error = U_ZERO_ERROR;
  UParseError where{};
  auto* compiled = uregex_open(utf16.data(), static_cast<std::int32_t>(utf16.size()), 0, &where, &error);
  if (U_FAILURE(error)) {
    throw UsageError({.what = text::concat("ICU cannot compute the regular expression ", text::quote(expression), ": ",
                                           u_errorName(error))});
  }
  const auto owner = std::make_shared<Compiled>();
  owner->expression = compiled;
  compiled_ = owner;
}

std::vector<TextRange> Pattern::matches(const std::u32string& text) const {
  if (text.empty()) return {};
  std::u16string utf16;
  std::vector<std::size_t> index;  // of the character at each UTF-16 unit, and the end
  utf16.reserve(text.size());
  index.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    index.push_back(i);
    if (text[i] < 0x10000) {
      utf16.push_back(static_cast<char16_t>(text[i]));
      continue;
    }
    utf16.push_back(U16_LEAD(text[i]));
    utf16.push_back(U16_TRAIL(text[i]));
    index.push_back(i);
  }
  index.push_back(text.size());
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<URegularExpression, void (*)(URegularExpression*)> own(
      uregex_clone(compiled_->expression, &error), uregex_close);
  // Long runs need more than the default. An expression that goes back for ever is stopped after a few seconds.
  constexpr std::int32_t stack_bytes = 1 << 28, time_steps = 3000;
  uregex_setStackLimit(own.get(), stack_bytes, &error);
  uregex_setTimeLimit(own.get(), time_steps, &error);
  uregex_setText(own.get(), utf16.data(), static_cast<std::int32_t>(utf16.size()), &error);
  std::vector<TextRange> all;
  while (U_SUCCESS(error) && uregex_findNext(own.get(), &error)) {
    const auto begin = uregex_start(own.get(), 0, &error), end = uregex_end(own.get(), 0, &error);
    const TextRange found{index[static_cast<std::size_t>(begin)], index[static_cast<std::size_t>(end)]};
    const bool is_repeated = found.size() == 0 && !all.empty() && all.back().end == found.end;
    if (!is_repeated) all.push_back(found);
  }
  if (U_FAILURE(error))
    throw Error({.what = text::concat("A regular expression failed on a text: ", u_errorName(error))});
  return all;
}

}  // namespace hortator::models
