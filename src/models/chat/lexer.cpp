#include "models/chat/lexer.hpp"

#include <algorithm>
#include <cctype>

#include "core/text/text.hpp"
#include "models/chat/value.hpp"

namespace hortator::models::chat {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Segment> run() {
    while (at_ < source_.size()) {
      const auto open = next_tag();
      add_text(open);
      if (open >= source_.size()) break;
      at_ = open;
      read_tag();
    }
    return std::move(segments_);
  }

 private:
  bool has(std::size_t at, std::string_view text) const { return source_.compare(at, text.size(), text) == 0; }
  /// Counts on from the last place that was asked for.
  std::size_t line_of(std::size_t at) {
    if (at < counted_) counted_ = 0, line_ = 1;
    const auto* text = source_.data();
    line_ += static_cast<std::size_t>(std::count(text + counted_, text + at, '\n'));
    counted_ = at;
    return line_;
  }
  [[noreturn]] void fail_at(std::size_t at, const std::string& what) {
    fail(text::concat("line ", line_of(at), ": ", what));
  }

  std::size_t next_tag() const {
    auto open = source_.find('{', at_);
    while (open < source_.size() && !has(open, "{{") && !has(open, "{%") && !has(open, "{#"))
      open = source_.find('{', open + 1);
    return std::min(open, source_.size());
  }

  /// The text before a tag. A block at the beginning of a line takes the spaces before it, `{%-` all white space.
  void add_text(std::size_t end) {
    std::string text = source_.substr(at_, end - at_);
    if (strips_) text.erase(0, std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size()));
    if (trims_ && text.starts_with('\n')) text.erase(0, 1);
    strips_ = trims_ = false;
    if (end < source_.size()) {
      const auto mark = end + 2 < source_.size() ? source_[end + 2] : ' ';
      if (mark == '-') {
        while (!text.empty() && is_space(text.back())) text.pop_back();
      } else if (mark != '+' && !has(end, "{{")) {
        const auto line = text.find_last_not_of(" \t");
        const bool begins_line =
            line == std::string::npos ? (at_ == 0 || source_[at_ - 1] == '\n' || was_trimmed_) : text[line] == '\n';
        if (begins_line) text.resize(line == std::string::npos ? 0 : line + 1);
      }
    }
    if (!text.empty()) segments_.push_back({.kind = SegmentKind::text, .text = std::move(text), .line = line_of(at_)});
  }

  void read_tag() {
    const auto open = at_;
    const char kind = source_[open + 1];
    at_ += 2;
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    if (kind == '#') return skip_comment(open);
    Segment segment{.kind = kind == '{' ? SegmentKind::output : SegmentKind::statement, .line = line_of(open)};
    const std::string close = kind == '{' ? "}}" : "%}";
    std::size_t depth = 0;
    while (true) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
      if (at_ >= source_.size()) fail_at(open, "the tag does not end");
      if (depth == 0 && ends_tag(close, kind != '{')) break;
      segment.tokens.push_back(next_token(depth));
    }
    segment.tokens.push_back({.line = line_of(at_ - 1)});
    const auto& first = segment.tokens.front();
    if (kind == '%' && first.kind == TokenKind::name && first.text == "raw") return read_raw(open);
    segments_.push_back(std::move(segment));
  }

  /// Whether the tag ends here; passes its end.
  bool ends_tag(const std::string& close, bool is_block) {
    const bool has_mark = source_[at_] == '-' || source_[at_] == '+';
    if (!has(at_ + (has_mark ? 1 : 0), close)) return false;
    end_tag(has_mark ? source_[at_] : ' ', is_block);
    at_ += has_mark ? 3 : 2;
    was_trimmed_ = trims_ && at_ < source_.size() && source_[at_] == '\n';
    return true;
  }

  void end_tag(char mark, bool is_block) {
    strips_ = mark == '-';
    trims_ = is_block && mark == ' ';
  }

  void skip_comment(std::size_t open) {
    const auto close = source_.find("#}", at_);
    if (close == std::string::npos) fail_at(open, "the comment does not end");
    const char mark =
        close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+') ? source_[close - 1] : ' ';
    end_tag(mark, true);
    at_ = close + 2;
    was_trimmed_ = trims_ && at_ < source_.size() && source_[at_] == '\n';
  }

  void read_raw(std::size_t open) {
    const auto close = source_.find("{% endraw %}", at_);
    if (close == std::string::npos) fail_at(open, "'raw' without '{% endraw %}'");
    strips_ = trims_ = false;
    segments_.push_back({.kind = SegmentKind::text, .text = source_.substr(at_, close - at_), .line = line_of(open)});
    at_ = close + std::string_view("{% endraw %}").size();
    trims_ = true;
  }

  TemplateToken next_token(std::size_t& depth) {
    const auto c = source_[at_];
    const auto line = line_of(at_);
    if (c == '\'' || c == '"') return {TokenKind::string, string_literal(c), line};
    if (is_digit(c)) return {TokenKind::number, take([](char x) { return is_digit(x) || x == '.' || x == '_'; }), line};
    if (is_name(c)) return {TokenKind::name, take(is_name), line};
    for (const std::string_view op : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (!has(at_, op)) continue;
      at_ += op.size();
      return {TokenKind::op, std::string(op), line};
    }
    if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
      fail_at(at_, text::concat("unexpected ", text::quote(std::string(1, c))));
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
    ++at_;
    return {TokenKind::op, std::string(1, c), line};
  }

  template <typename Matches>
  std::string take(const Matches& matches) {
    const auto begin = at_;
    while (at_ < source_.size() && matches(source_[at_])) ++at_;
    return source_.substr(begin, at_ - begin);
  }

  std::string string_literal(char quote) {
    const auto open = at_++;
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      auto c = source_[at_++];
      if (c == '\\' && at_ < source_.size()) {
        constexpr std::string_view names = "ntr\\'\"", values = "\n\t\r\\'\"";
        const auto escaped = names.find(source_[at_]);
        if (escaped == std::string_view::npos)
          fail_at(at_, text::concat("the escape '\\", source_[at_], "' is not supported"));
        c = values[escaped];
        ++at_;
      }
      text.push_back(c);
    }
    if (at_ >= source_.size()) fail_at(open, "the string does not end");
    ++at_;
    return text;
  }

  std::string source_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0, line_ = 1;   ///< of line_of()
  bool strips_ = false, trims_ = false;  ///< what the last tag does to the text after it
  bool was_trimmed_ = false;             ///< the last tag has taken the end of its line
  std::vector<Segment> segments_;
};

/// Line ends are \n, and the one at the end of the template does not count.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool is_pair = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!is_pair) text.push_back(source[i] == '\r' ? '\n' : source[i]);
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::vector<Segment> segments_of(std::string_view source) { return Lexer(with_plain_lines(source)).run(); }

}  // namespace hortator::models::chat
