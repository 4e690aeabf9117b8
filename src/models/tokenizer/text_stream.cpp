#include <algorithm>
#include <hortator/models/tokenizer.hpp>

#include "core/text/utf8.hpp"

namespace hortator::models {
namespace {

constexpr std::string_view replacement_character = "\uFFFD";

}  // namespace

std::string TextStream::push(std::int64_t id) {
  ids_.push_back(id);
  auto text = tokenizer_.decode(ids_, skip_special_tokens_);
  if (text.ends_with(replacement_character)) return "";  // more bytes may complete a character
  auto more = after_shown(text);
  // Tokens that have come out are needed only as what precedes the next ones.
  const std::vector<std::int64_t> last(ids_.begin() + static_cast<std::ptrdiff_t>(settled_), ids_.end());
  auto text_of_last = settled_ > 0 ? tokenizer_.decode(last, skip_special_tokens_) : "";
  if (!text_of_last.empty()) {
    ids_ = last;
    text = std::move(text_of_last);
  }
  settled_ = ids_.size();
  shown_ = std::move(text);
  return more;
}

std::string TextStream::finish() {
  auto more = after_shown(tokenizer_.decode(ids_, skip_special_tokens_));
  ids_.clear();
  settled_ = 0;
  shown_.clear();
  return more;
}

/// What follows the text that has come out. It never begins within a character, even if that text has changed.
std::string TextStream::after_shown(const std::string& text) const {
  auto begin = std::min(shown_.size(), text.size());
  while (begin < text.size() && text::continues_character(text[begin])) ++begin;
  return text.substr(begin);
}

}  // namespace hortator::models
