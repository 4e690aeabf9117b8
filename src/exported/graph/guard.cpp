#include "exported/graph/guard.hpp"

#include <algorithm>
#include <cctype>

#include "exported/graph/whole_number.hpp"

namespace hortator::exported {
namespace {

struct Unknown {};

std::int64_t known(WholeNumber number) {
  if (!number) throw Unknown();
  return *number;
}

/// Computes an expression while it reads it; truth is 1.
class GuardReader {
 public:
  GuardReader(std::string_view text, const GuardedValue& value) : text_(text), value_(value) {}

  std::int64_t all() {
    const auto result = any_of();
    spaces();
    if (at_ != text_.size()) throw Unknown();
    return result;
  }

 private:
  std::int64_t any_of() {
    constexpr int max_depth = 64;
    if (++depth_ > max_depth) throw Unknown();
    auto result = all_of();
    while (take("or ")) result = static_cast<std::int64_t>((all_of() != 0) | (result != 0));
    --depth_;
    return result;
  }
  std::int64_t all_of() {
    auto result = negation();
    while (take("and ")) result = static_cast<std::int64_t>((negation() != 0) & (result != 0));
    return result;
  }
  std::int64_t negation() {
    bool is_inverted = false;
    while (take("not ")) is_inverted = !is_inverted;
    const auto result = comparison();
    return is_inverted ? static_cast<std::int64_t>(result == 0) : result;
  }
  std::int64_t comparison() {
    const auto left = sum();
    if (take("<=")) return static_cast<std::int64_t>(left <= sum());
    if (take(">=")) return static_cast<std::int64_t>(left >= sum());
    if (take("==")) return static_cast<std::int64_t>(left == sum());
    if (take("!=")) return static_cast<std::int64_t>(left != sum());
    if (take("<")) return static_cast<std::int64_t>(left < sum());
    if (take(">")) return static_cast<std::int64_t>(left > sum());
    return left;
  }
  std::int64_t sum() {
    auto result = product();
    for (;;) {
      if (take("+")) {
        result = known(add(result, product()));
      } else if (take("-")) {
        result = known(subtract(result, product()));
      } else {
        return result;
      }
    }
  }
  // What follows a "/" is left over, and so unknown: quotients may have fractions.
  std::int64_t product() {
    auto result = factor();
    for (;;) {
      if (take("//")) {
        result = known(floor_divide(result, factor()));
      } else if (take("%")) {
        result = known(modulo(result, factor()));
      } else if (take("*")) {
        result = known(multiply(result, factor()));
      } else {
        return result;
      }
    }
  }
  std::int64_t factor() {
    bool is_negative = false;
    while (take("-")) is_negative = !is_negative;
    auto result = primary();
    if (take("**")) result = known(power(result, primary()));
    return is_negative ? known(subtract(0, result)) : result;
  }
  std::int64_t primary() {
    if (take("(")) {
      const auto inner = any_of();
      require(")");
      return inner;
    }
    if (take("L[")) return named();
    if (take("max(") || take("torch.sym_max(")) return extreme(true);
    if (take("min(") || take("torch.sym_min(")) return extreme(false);
    return number();
  }
  std::int64_t extreme(bool is_largest) {
    auto result = any_of();
    while (take(",")) {
      const auto next = any_of();
      result = is_largest ? std::max(result, next) : std::min(result, next);
    }
    require(")");
    return result;
  }
  std::int64_t number() {
    constexpr std::int64_t ten = 10;
    spaces();
    const auto begin = at_;
    std::int64_t result = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      result = known(add(known(multiply(result, ten)), text_[at_++] - '0'));
    if (at_ == begin || (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e'))) throw Unknown();
    return result;
  }
  /// Behind "L[".
  std::int64_t named() {
    auto path = key();
    for (;;) {
      if (take("[")) {
        path += "." + key();
      } else if (!take(".")) {
        return known(value_(path, {}));
      } else if (take("size()[")) {
        const auto dimension = number();
        require("]");
        return known(value_(path, dimension));
      } else {
        path += "." + field();
      }
    }
  }
  std::string key() {
    const auto end = text_.find(']', at_);
    if (end == std::string_view::npos) throw Unknown();
    auto found = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (found.size() >= 2 && found.front() == '\'' && found.back() == '\'') found = found.substr(1, found.size() - 2);
    return std::string(found);
  }
  /// The name of a field of a named tuple.
  std::string field() {
    const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const auto begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin || (at_ < text_.size() && text_[at_] == '(')) throw Unknown();
    return std::string(text_.substr(begin, at_ - begin));
  }

  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view what) {
    spaces();
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  void require(std::string_view what) {
    if (!take(what)) throw Unknown();
  }

  std::string_view text_;
  const GuardedValue& value_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool may_hold(std::string_view guard, const GuardedValue& value) {
  try {
    return GuardReader(guard, value).all() != 0;
  } catch (const Unknown&) {
    return true;
  }
}

}  // namespace hortator::exported
