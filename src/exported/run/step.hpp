#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "exported/graph/program.hpp"
#include "exported/run/value.hpp"

namespace hortator::exported {

/// A node of a graph, prepared for calls. Immutable, so that several threads can run it.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) const = 0;
};

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

/// A call of an operator of LibTorch or of a library that has registered it. Null if there is no such operator.
std::unique_ptr<Step> operator_step(const Node& node, Slots& slots);

/// A call of one of Python's functions of numbers, which compute sizes: "_operator.add". Null for other names.
std::unique_ptr<Step> number_step(const Node& node, Slots& slots);

/// A call of an operator that runs graphs: with other modes, or one of two. Null for other names.
std::unique_ptr<Step> nested_step(const Node& node, Slots& slots);

}  // namespace hortator::exported
