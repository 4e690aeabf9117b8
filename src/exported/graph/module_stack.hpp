#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "exported/file/field.hpp"

namespace hortator::exported {

/// A module whose forward ran when an operator was recorded.
struct CallingModule {
  std::string path = {};  ///< "layers.0"; empty for the whole model
  std::string type = {};  ///< the name of its class in Python: "Linear"
};

/// Reads the text of a node's nn_module_stack: "L__self__,,net.Net;L__self___fc,fc,torch.nn.modules.linear.Linear". The
/// outermost module is first. What is not of this form is left out. Pure.
std::vector<CallingModule> parse_module_stack(std::string_view text);

/// The modules around a node of the file.
std::vector<CallingModule> modules_around(const Field& node);

/// The classes of the modules that the nodes of a graph were recorded in, by their paths.
std::map<std::string, std::string> module_classes(const Field& graph);

}  // namespace hortator::exported
