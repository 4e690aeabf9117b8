#include "formats/torch/pickle/stack.hpp"

#include <ranges>

#include "core/text/text.hpp"

namespace hortator::formats::pickle {

Ref Stack::pop() {
  if (values_.size() <= (marks_.empty() ? 0 : marks_.back())) input_.fail("it takes a value from an empty stack");
  auto* value = values_.back();
  values_.pop_back();
  return value;
}

Ref Stack::top() {
  auto* value = pop();
  push(value);
  return value;
}

std::vector<Ref> Stack::pop_to_mark() {
  if (marks_.empty()) input_.fail("it ends a list that it did not begin");
  std::vector<Ref> items(values_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), values_.end());
  values_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

std::vector<Ref> Stack::pop_many(std::size_t count) {
  std::vector<Ref> items(count);
  for (auto& item : std::ranges::reverse_view(items)) item = pop();
  return items;
}

void Stack::recall(std::uint32_t number) {
  const auto found = memo_.find(number);
  if (found == memo_.end()) input_.fail(text::concat("it refers to a value ", number, " that does not exist"));
  push(found->second);
}

}  // namespace hortator::formats::pickle
