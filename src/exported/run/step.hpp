#pragma once

#include <memory>

#include "exported/graph/program.hpp"
#include "exported/run/value.hpp"

namespace hortator::exported {

/// A node of a graph, prepared for calls. Immutable, so that several threads can run it.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) const = 0;
};

/// A call of an operator of LibTorch or of a library that has registered it. Null if there is no such operator.
std::unique_ptr<Step> operator_step(const Node& node, Slots& slots);

/// A call of one of Python's functions of numbers, which compute sizes: "_operator.add". Null for other names.
std::unique_ptr<Step> number_step(const Node& node, Slots& slots);

/// A call of an operator that runs graphs: with other modes, or one of two. Null for other names.
std::unique_ptr<Step> nested_step(const Node& node, Slots& slots);

}  // namespace hortator::exported
