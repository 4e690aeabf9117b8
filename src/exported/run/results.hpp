#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "exported/graph/program.hpp"
#include "exported/run/value.hpp"

namespace hortator::exported {

/// The slots of a node's results. A result is a value, a list of values each with a slot of its own, or unused.
class Results {
 public:
  Results(const std::vector<Argument>& outputs, Slots& slots);

  std::size_t size() const { return outputs_.size(); }
  /// Stores result `index`. Throws ExportFault if it is a list of another length than the node has.
  void store(std::size_t index, c10::IValue value, Frame& frame) const;

 private:
  struct Output {
    std::optional<std::size_t> slot = {};
    std::vector<std::optional<std::size_t>> items = {};  ///< of a list
    bool is_list = false;
  };
  std::vector<Output> outputs_;
};

}  // namespace hortator::exported
