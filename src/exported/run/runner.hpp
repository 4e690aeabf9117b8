#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "exported/graph/program.hpp"
#include "exported/run/step.hpp"
#include "exported/run/value.hpp"

namespace hortator::exported {

/// Runs a graph node by node. Operators are found and their arguments bound once, by the constructor; a value is
/// released after its last use. Threads may run it at the same time.
class GraphRunner {
 public:
  /// Throws ExportFault, naming the node, for operators and arguments that are not supported. Keeps no reference to
  /// the graph.
  explicit GraphRunner(const Graph& graph);

  /// Returns the graph's outputs. An exception of an operator also names the node. Inputs that the graph does not name
  /// are ignored.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, c10::Device device) const;

  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return outputs_.size(); }

 private:
  struct PreparedNode {
    std::unique_ptr<Step> step;
    std::vector<std::size_t> released;  ///< slots that no later node uses
    std::string description;            ///< for messages
  };

  void add_node(const Node& node);
  void plan_releases(const Graph& graph);
  static void run_node(const PreparedNode& node, Frame& frame);

  Slots slots_;
  std::vector<std::optional<std::size_t>> inputs_;  ///< their slots
  std::vector<PreparedNode> nodes_;
  std::vector<BoundValue> outputs_;
};

}  // namespace hortator::exported
