#include "exported/graph/module_stack.hpp"

#include <string>

#include "support/catch.hpp"

using hortator::exported::parse_module_stack;

namespace {

/// "path:class path:class"
std::string modules_in(const std::string& text) {
  std::string modules;
  for (const auto& [path, type] : parse_module_stack(text)) modules += (modules.empty() ? "" : " ") + path + ":" + type;
  return modules;
}

}  // namespace

TEST_CASE("the modules around a node have paths and classes") {
  CHECK(modules_in("L__self__,,net.Net;L__self___fc,fc,torch.nn.modules.linear.Linear") == ":Net fc:Linear");
  CHECK(modules_in("getattr(L__self___blocks, '0'),blocks.0,Block") == "blocks.0:Block");
  CHECK(modules_in("fc@1,fc@1,torch.nn.Linear") == "fc:Linear");
}

TEST_CASE("what is not a module around a node is left out") {
  for (const auto* text : {"", ";", ",", "fc", "fc,Linear", ";;"}) CHECK(modules_in(text).empty());
  const std::string unknown = "_empty_nn_module_stack_from_metadata_hook";
  CHECK(modules_in(unknown + "," + unknown + "," + unknown).empty());
  CHECK(modules_in("fc;a,b,c.D") == "b:D");
  CHECK(modules_in(",,") == ":");
}
