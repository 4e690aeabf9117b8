#pragma once

#include "exported/file/field.hpp"
#include "exported/graph/program.hpp"

namespace hortator::exported {

/// Reads an argument of a node, a graph as an argument included. Throws ExportFault for kinds that are not supported.
Argument read_argument(const Field& field);

/// Reads a graph: its inputs, nodes and outputs.
Graph read_graph(const Field& field);

}  // namespace hortator::exported
