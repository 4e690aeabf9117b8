#include "accelerator/interop/accelerate/python_order.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>
#include <typeinfo>

#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using torch::optim::OptimizerOptions;

/// The name of Python's class; empty for a type that it does not have.
std::string python_type_of(const torch::optim::Optimizer& optimizer) {
  if (optimizer.param_groups().empty()) return "";
  const auto& options = optimizer.param_groups().front().options();
  if (typeid(options) == typeid(torch::optim::AdamWOptions)) return "AdamW";
  if (typeid(options) == typeid(torch::optim::AdamOptions)) return "Adam";
  if (typeid(options) == typeid(torch::optim::SGDOptions)) return "SGD";
  if (typeid(options) == typeid(torch::optim::RMSpropOptions)) return "RMSprop";
  if (typeid(options) == typeid(torch::optim::AdagradOptions)) return "Adagrad";
  return "";
}

std::string order_place(std::size_t index) { return text::concat("run/python/", index, "/"); }

}  // namespace

void put_python_order(StateDict& common, std::size_t index, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names) {
  const auto place = order_place(index);
  common.put(place + "type", python_type_of(optimizer));
  const auto& groups = optimizer.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<std::string> in_group;
    for (const auto& parameter : groups[g].params()) {
      const auto found = names.find(parameter.unsafeGetTensorImpl());
      in_group.push_back(found != names.end() ? found->second
                                              : text::concat("group_", g, "_parameter_", in_group.size()));
    }
    common.put(text::concat(place, "group_", g), text::join(in_group, "\n"));
  }
}

PythonOrder python_order(const StateDict& values, std::size_t index) {
  const auto place = order_place(index);
  if (!values.contains(place + "type")) {
    throw UsageError({.what = text::concat("The checkpoint does not say in which order optimizer number ", index,
                                           " has its parameters"),
                      .why = "an older version of Hortator wrote it, and Python numbers parameters",
                      .hint = "load it with this version, and save again"});
  }
  PythonOrder order{.type = values.get<std::string>(place + "type")};
  for (std::size_t g = 0; values.contains(text::concat(place, "group_", g)); ++g) {
    const auto names = values.get<std::string>(text::concat(place, "group_", g));
    order.groups.push_back(names.empty() ? std::vector<std::string>() : text::split(names, '\n'));
  }
  return order;
}

}  // namespace hortator::accelerator
