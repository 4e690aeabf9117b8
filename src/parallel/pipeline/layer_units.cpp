#include "parallel/pipeline/layer_units.hpp"

#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <cstdint>

namespace hortator::parallel {
namespace {

struct Unit {
  std::string name;
  const torch::nn::Module* module;
};

bool is_list(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::SequentialImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::ModuleListImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::ModuleDictImpl*>(&module) != nullptr;
}

std::int64_t elements_of(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

// A part whose own parameters would lie in no part cannot be taken apart.
bool is_divisible(const torch::nn::Module& module) {
  return !module.children().empty() && module.parameters(/*recurse=*/false).empty();
}

std::vector<Unit> parts_of(const Unit& unit) {
  std::vector<Unit> parts;
  for (const auto& child : unit.module->named_children()) {
    const Unit part{.name = unit.name.empty() ? child.key() : unit.name + "." + child.key(),
                    .module = child.value().get()};
    if (is_list(*part.module)) {
      const auto layers = parts_of(part);
      parts.insert(parts.end(), layers.begin(), layers.end());
    } else if (elements_of(*part.module) > 0) {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

std::vector<std::string> layer_units(const torch::nn::Module& module, int stages) {
  auto units = parts_of({.name = "", .module = &module});
  while (units.size() < static_cast<std::size_t>(stages)) {
    const auto size = [](const Unit& unit) { return is_divisible(*unit.module) ? elements_of(*unit.module) : -1; };
    const auto largest = std::ranges::max_element(units, {}, size);
    if (largest == units.end() || size(*largest) < 0) break;
    const auto parts = parts_of(*largest);
    units.insert(units.erase(largest), parts.begin(), parts.end());
  }
  std::vector<std::string> names;
  for (const auto& unit : units) names.push_back(unit.name);
  return names;
}

}  // namespace hortator::parallel
