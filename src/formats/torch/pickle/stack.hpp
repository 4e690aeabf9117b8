#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "formats/torch/pickle/input.hpp"
#include "formats/torch/pickle/machine.hpp"

/// The objects of the machine that reads pickles. An object may be an element of several others and of itself, so one
/// heap owns all of them.
namespace hortator::formats::pickle {

struct Object;
using Ref = Object*;

struct Class {
  std::string name = {};  ///< with its module: "collections.OrderedDict"
};
struct Storage {
  std::optional<at::ScalarType> type = {};  ///< empty: untyped
  std::string name = {};
  std::int64_t size = 0;  ///< in elements; in bytes if untyped
};
struct Tuple {
  std::vector<Ref> items = {};
};
struct List {
  std::vector<Ref> items = {};
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items = {};
};
struct Foreign {
  std::string name = {};
  std::vector<Ref> arguments = {};
};

struct Object {
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, PickleValue::Huge, PickledTensor, Class,
               Storage, Tuple, List, Dict, Foreign>
      content = nullptr;
};

class Heap {
 public:
  template <typename Content>
  Ref make(Content content) {
    return &objects_.emplace_back(Object{std::move(content)});
  }

 private:
  std::deque<Object> objects_;  // a deque does not move them
};

/// Copies what `root` reaches into a tree; elements of several objects are repeated. Throws PickleFault if it is nested
/// too deep, has more than `max_values` values, or holds a foreign object that is refused.
PickleValue tree_of(Ref root, std::size_t max_values, ForeignObjects foreign);

[[noreturn]] void refuse_foreign(const std::string& name);

/// The stack of the machine that reads pickles: values, marks between them, and the memo. Throws PickleFault, with the
/// offset in `input`, for values that do not exist.
class Stack {
 public:
  explicit Stack(const Input& input) : input_(input) {}

  bool empty() const { return values_.empty() && marks_.empty(); }
  void push(Ref value) { values_.push_back(value); }
  Ref pop();
  Ref top();
  void mark() { marks_.push_back(values_.size()); }
  std::vector<Ref> pop_to_mark();
  std::vector<Ref> pop_many(std::size_t count);

  void remember(std::uint32_t number) { memo_[number] = top(); }
  void remember_next() { remember(static_cast<std::uint32_t>(memo_.size())); }
  void recall(std::uint32_t number);

 private:
  const Input& input_;
  std::vector<Ref> values_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Ref> memo_;
};

}  // namespace hortator::formats::pickle
