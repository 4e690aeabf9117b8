#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hortator::paging {

/// Predicts which page will be used next from the pages used before. It follows the recorded uses for as long as they
/// repeat; when they do not, it looks for the position whose preceding uses match the latest ones best. A record that
/// turns round (backward after forward) is followed backwards. Steps need not be marked. Pure.
class AccessOrder {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  /// Before the first use, pages are expected in the order of their numbers.
  explicit AccessOrder(int pages);

  /// Records that `page` is used now. Returns false, and records nothing, if it was also the last page used.
  bool note(int page);
  /// Records that the pages' content changes now: what is fetched before is of no use after it. In the prediction it
  /// stands as a page with the number boundary().
  void note_boundary() { note(boundary()); }
  int boundary() const { return static_cast<int>(positions_.size()) - 1; }

  int last() const { return last_; }  ///< -1 before the first use

  /// How many uses ahead expected() can predict.
  std::size_t known_ahead() const;
  /// The page that is expected `ahead` uses after the last one (1: the next). `ahead` is at most known_ahead().
  int expected(std::size_t ahead) const;
  /// After how many uses `page` is expected next; `never` if the prediction does not have it.
  std::size_t distance_to(int page) const;

  std::uint64_t surprises() const { return surprises_; }  ///< uses that were not expected

 private:
  enum class Direction { forward, backward };
  struct Match {
    std::size_t length = 0;  ///< number of preceding uses that agree
    std::size_t position = 0;
    Direction direction = Direction::forward;
  };

  void append(int page);
  void forget_old();
  void find_position();
  std::size_t agreement(std::size_t position, Direction direction) const;

  std::vector<int> course_;
  std::vector<std::vector<std::size_t>> positions_;  ///< of each page, and of the boundary, in the course, ascending
  bool is_lost_ = false;                             ///< there is no prediction
  std::size_t next_ = 0;                             ///< position of the page expected next
  Direction direction_ = Direction::forward;
  int last_ = -1;
  std::uint64_t surprises_ = 0;
};

}  // namespace hortator::paging
