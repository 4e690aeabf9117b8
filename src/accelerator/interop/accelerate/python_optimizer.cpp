#include <array>
#include <hortator/error.hpp>
#include <set>

#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate/python_dict.hpp"
#include "accelerator/interop/accelerate/python_files.hpp"
#include "accelerator/interop/accelerate/python_order.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using formats::PickleValue;

/// Options of Python's groups that LibTorch's do not have. None of them changes a step's result.
void put_other_options(PythonDict& group, const std::string& type) {
  group.put("maximize", false);
  group.put("foreach", nullptr);
  group.put("differentiable", false);
  const bool is_adam = type == "AdamW" || type == "Adam";
  if (type != "RMSprop") group.put("fused", nullptr);
  if (is_adam || type == "RMSprop") group.put("capturable", false);
  if (is_adam) group.put("decoupled_weight_decay", type == "AdamW");
}

bool is_truth(const std::string& name) { return name == "amsgrad" || name == "nesterov" || name == "centered"; }

class OptimizerForPython {
 public:
  OptimizerForPython(const checkpoint::Reader& reader, std::size_t index)
      : reader_(reader),
        index_(index),
        prefix_(text::concat("optimizers/", index, "/")),
        order_(python_order(reader.values(), index)),
        moments_(reader.values().under(prefix_ + "state")) {
    if (!order_.type.empty()) return;
    throw UsageError({.what = text::concat("Optimizer number ", index, " cannot be written for Python"),
                      .why = "only Adam, AdamW, SGD, RMSprop and Adagrad have the same state there",
                      .hint = "export the weights alone: hortator checkpoint export CHECKPOINT OUT.safetensors"});
  }

  PythonFile file() {
    PythonDict state;
    PickleValue::List groups;
    std::int64_t number = 0;
    for (std::size_t g = 0; g < order_.groups.size(); ++g) {
      PickleValue::List numbers;
      for (const auto& name : order_.groups[g]) {
        if (auto moments = moments_of(name); !moments.empty()) state.put(number, std::move(moments).value());
        numbers.push_back({.content = number++});
      }
      groups.push_back(group(g, std::move(numbers)));
    }
    PythonDict both;
    both.put("state", std::move(state).value());
    both.put("param_groups", std::move(groups));
    return {.name = numbered_file("optimizer", index_, ".bin"), .value = std::move(both).value()};
  }

 private:
  /// Python keeps the step of Adam as a real number.
  PythonDict moments_of(const std::string& parameter) const {
    PythonDict moments;
    const auto numbers = moments_.under(parameter);
    for (const auto& [name, value] : numbers.values()) {
      const auto* whole = std::get_if<std::int64_t>(&value);
      moments.put(name, name == "step" && whole != nullptr ? PickleValue{.content = static_cast<double>(*whole)}
                                                           : python_value(value));
    }
    const auto folder = prefix_ + "state/" + parameter + "/";
    for (auto found = reader_.tensors().lower_bound(folder);
         found != reader_.tensors().end() && found->first.starts_with(folder); ++found) {
      const auto name = found->first.substr(folder.size());
      if (name != "master") moments.put(name, tensor_value(found->first, found->second));
    }
    return moments;
  }

  PickleValue group(std::size_t g, PickleValue::List numbers) const {
    const auto options = reader_.values().under(text::concat(prefix_, "groups/", g));
    PythonDict group;
    for (const auto& [name, value] : options.values()) {
      if (name == "beta1" || name == "beta2") continue;
      const auto* whole = std::get_if<std::int64_t>(&value);
      group.put(name, is_truth(name) && whole != nullptr ? PickleValue{.content = *whole != 0} : python_value(value));
    }
    if (options.contains("beta1")) {
      group.put("betas",
                tuple_of({{.content = options.get<double>("beta1")}, {.content = options.get<double>("beta2")}}));
    }
    put_other_options(group, order_.type);
    const auto base = text::concat("schedules/", index_, "/base_rates/", g);
    if (reader_.values().contains(base)) group.put("initial_lr", reader_.values().get<double>(base));
    group.put("params", std::move(numbers));
    return std::move(group).value();
  }

  const checkpoint::Reader& reader_;
  std::size_t index_;
  std::string prefix_;
  PythonOrder order_;
  StateDict moments_;
};

}  // namespace

PythonFile optimizer_for_python(const checkpoint::Reader& reader, std::size_t index) {
  return OptimizerForPython(reader, index).file();
}

}  // namespace hortator::accelerator
