#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

/// Which operators of a forward pass belong to which stage, and what goes from one stage to the next. Pure.
namespace hortator::parallel {

/// A result of an operator: both numbers count from 0.
struct ValueId {
  std::int64_t op = 0;
  std::int64_t result = 0;

  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

/// The operators of a forward pass in the order in which the program calls them.
struct Route {
  struct Step {
    const void* op = nullptr;  ///< its schema
    bool is_staged = false;    ///< it depends on parameters: only the ranks of its stage can compute it
  };
  std::vector<Step> steps = {};
  std::vector<std::int64_t> begins = {};  ///< of each stage, the first operator; the first stage begins with 0
  std::vector<std::vector<ValueId>> messages = {};  ///< what each stage gets from the one before it

  int stages() const { return static_cast<int>(begins.size()); }
  int stage_of(std::int64_t op) const;
  /// Whether a message has the result.
  bool carries(const ValueId& value) const;
};

/// Finds a route while a program calls its operators.
class RouteBuilder {
 public:
  explicit RouteBuilder(int stages) : stages_(stages) {}

  /// The stage of the latest operator.
  int stage() const { return static_cast<int>(route_.begins.size()) - 1; }
  int stages() const { return stages_; }
  std::int64_t next_op() const { return static_cast<std::int64_t>(route_.steps.size()); }
  /// Adds an operator of stage `stage`, which is not before that of the latest one, and the values that it uses.
  void add(const Route::Step& step, int stage, std::span<const ValueId> uses);
  /// A value whose memory is that of another one, as views have.
  void note_alias(const ValueId& view, const ValueId& of);
  /// Whether stages have got the memory of a value in several messages' places: writing there would change one only.
  bool is_split(const ValueId& value) const;

  /// Its stages are those that have begun.
  Route finish() &&;

 private:
  ValueId memory_of(const ValueId& value) const;

  int stages_;
  Route route_{.begins = {0}, .messages = {{}}};
  std::vector<std::set<ValueId>> sent_{{}};  ///< to each stage
  std::map<ValueId, ValueId> memory_;        ///< of views
};

}  // namespace hortator::parallel
