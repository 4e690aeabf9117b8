#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/torch/pickle/input.hpp"
#include "formats/torch/pickle/objects.hpp"

namespace hortator::formats::pickle {

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
  void recall(std::uint32_t number);

 private:
  const Input& input_;
  std::vector<Ref> values_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Ref> memo_;
};

}  // namespace hortator::formats::pickle
