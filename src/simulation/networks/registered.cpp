#include "simulation/networks/registered.hpp"

#include <hortator/error.hpp>
#include <hortator/models/registered.hpp>
#include <map>

#include "core/text/text.hpp"

namespace hortator {
namespace {

std::map<std::string, models::ModuleFactory>& registered_modules() {
  static std::map<std::string, models::ModuleFactory> modules;
  return modules;
}

}  // namespace

namespace models {

void register_module(const std::string& name, ModuleFactory factory) {
  if (registered_modules().emplace(name, std::move(factory)).second) return;
  throw UsageError(
      {.what = "register_module(): the name " + text::quote(name) + " is taken", .hint = "choose another name"});
}

}  // namespace models

namespace simulation {

Registered::Registered(const Section& section) {
  const auto name = section.text("name");
  const auto found = registered_modules().find(name);
  if (found == registered_modules().end()) {
    std::vector<std::string> known;
    for (const auto& [other, factory] : registered_modules()) known.push_back(other);
    throw section.error("name", text::concat("no module ", text::quote(name), " is registered"),
                        known.empty() ? "call hortator::models::register_module() before the model is created"
                                      : text::suggestion(name, known));
  }
  module_ = found->second();
  register_module("module", module_.ptr());
}

Network::Tensors Registered::forward(const Tensors& inputs) {
  switch (inputs.size()) {
    case 1:
      return {module_.forward(inputs[0])};
    case 2:
      return {module_.forward(inputs[0], inputs[1])};
    case 3:
      return {module_.forward(inputs[0], inputs[1], inputs[2])};
    case 4:
      return {module_.forward(inputs[0], inputs[1], inputs[2], inputs[3])};
    default:
      throw UsageError(
          {.what = text::concat("A registered module takes one to four inputs, the batch has ", inputs.size()),
           .hint = "bind the arrays that its forward takes, as HORTATOR_INPUT"});
  }
}

}  // namespace simulation
}  // namespace hortator
