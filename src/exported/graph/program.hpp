#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "exported/graph/expression.hpp"
#include "exported/graph/structure.hpp"

/// An exported program as plain data, as the file has it.
namespace hortator::exported {

struct Graph;

/// A value that the graph names: an input, or a result of a node.
struct Reference {
  std::string name;
};

/// An argument or a result of a node. Nothing stands for None.
struct Argument {
  using List = std::vector<Argument>;
  std::variant<std::monostate, Reference, bool, std::int64_t, double, c10::complex<double>, std::string,
               c10::ScalarType, c10::MemoryFormat, c10::Layout, c10::Device, List, std::shared_ptr<const Graph>>
      content = {};

  bool is_none() const { return std::holds_alternative<std::monostate>(content); }
};

/// Visits the names of the values that an argument refers to.
void each_reference(const Argument& argument, const std::function<void(const std::string&)>& visit);

struct NamedArgument {
  std::string name;  ///< of the operator's parameter; empty for operators without a schema
  Argument value;
};

/// A call of an operator.
struct Node {
  std::string name;
  std::string target;  ///< "torch.ops.aten.linear.default", "_operator.add"
  std::vector<NamedArgument> inputs = {};
  std::vector<Argument> outputs = {};
  std::string module = {};       ///< path of the module whose forward made the call: "layers.0.attention"
  std::string source_line = {};  ///< File "net.py", line 8, in forward
  std::string position = {};     ///< in the file

  std::string to_string() const;  ///< for messages
};

/// Type and shape of an input.
struct InputShape {
  c10::ScalarType type = c10::ScalarType::Float;
  std::vector<Expression> sizes = {};
};

struct Graph {
  std::vector<Argument> inputs = {};
  std::vector<Argument> outputs = {};
  std::vector<Node> nodes = {};
};

/// An input of the graph.
struct InputSpec {
  enum class Kind { parameter, buffer, constant, user, fixed };
  Kind kind;
  std::string name;  ///< of the parameter, buffer or constant; of a user's input, the name of the value in the graph
  bool is_persistent = true;              ///< of a buffer: it is in the state dict
  std::optional<InputShape> shape = {};   ///< of a user's tensor
  std::optional<Expression> number = {};  ///< of a user's number
};

/// An output of the graph.
struct OutputSpec {
  enum class Kind { user, buffer, parameter, input };
  Kind kind;
  std::string name = {};  ///< of the buffer, parameter or input that gets the value
};

/// The values that the exporter found possible for a symbol.
struct SizeRange {
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;          ///< of the graph, in order
  std::vector<OutputSpec> outputs;        ///< of the graph, in order
  std::vector<std::string> input_names;   ///< of the user's inputs and the fixed ones, in order
  std::vector<std::string> output_names;  ///< of the user's outputs, in order
  std::map<std::string, SizeRange> ranges;
  std::vector<std::string> guards;  ///< Python's conditions on sizes and numbers of the inputs
  /// Names of Python's classes of modules whose forward was called, by their paths: "Linear" of "layers.0.query".
  std::map<std::string, std::string> module_classes;
  std::string torch_version;
};

}  // namespace hortator::exported
