#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <string>
#include <vector>

namespace hortator::observe {

/// What a record of operators needs to know of one.
struct OperatorFacts {
  std::string name = {};
  bool is_recorded = false;               ///< it computes elements, and does not consist of operators that are seen
  std::vector<std::size_t> written = {};  ///< arguments that hold its results, where it returns none
};

/// Null: not an operator of the dispatcher.
const OperatorFacts* facts_of(const at::RecordFunction& call);

/// Calls `act` for each defined tensor of a value, also in lists.
template <typename Act>
void for_tensors(const c10::IValue& value, const Act& act) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) act(value.toTensor());
  } else if (value.isList()) {
    for (const auto& element : value.toListRef()) for_tensors(element, act);
  }
}

}  // namespace hortator::observe
