#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hortator::paging {

/// What will be used next, judged by what was used before. It follows the earlier course of uses for as long as that
/// repeats itself, and looks for the place that resembles the present most when it does not; a course that turns round
/// (backward after forward) is followed backwards. No marks of steps are needed. Pure.
class AccessOrder {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  /// Before anything was used, pages are expected by their numbers.
  explicit AccessOrder(int pages);

  /// `page` is used now. Uses of the page that was used last are not counted: false.
  bool note(int page);

  int last() const { return last_; }  ///< -1: none was used

  /// How far expected() has an idea.
  std::size_t known_ahead() const;
  /// The page that is expected to be used `ahead` uses after the last one (1: the next), at most known_ahead().
  int expected(std::size_t ahead) const;
  /// After how many uses `page` comes up next; `never` if it does not, as far as is known.
  std::size_t distance_to(int page) const;

  std::uint64_t surprises() const { return surprises_; }  ///< uses that were not expected

 private:
  enum class Direction { forward, backward };
  struct Likeness {
    std::size_t length = 0;  ///< so many uses before agree
    std::size_t place = 0;
    Direction direction = Direction::forward;
  };

  void append(int page);
  void forget_old();
  void find_place();
  std::size_t agreement(std::size_t place, Direction direction) const;

  std::vector<int> course_;
  std::vector<std::vector<std::size_t>> places_;  ///< of each page in the course, rising
  bool is_lost_ = false;                          ///< no idea what comes next
  std::size_t next_ = 0;                          ///< the place of what comes next
  Direction direction_ = Direction::forward;
  int last_ = -1;
  std::uint64_t surprises_ = 0;
};

}  // namespace hortator::paging
