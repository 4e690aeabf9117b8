#include "accelerator/interop/deepspeed/zero_optimizer.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::accelerator {
namespace {

using formats::PickleValue;

[[noreturn]] void refuse_optimizer(const std::filesystem::path& folder, std::string why, std::string hint) {
  throw formats::FileError({.what = text::concat("The optimizer's state in ", folder, " cannot be read"),
                            .why = std::move(why),
                            .hint = std::move(hint)});
}

PickleValue text_value(std::string name) { return {.content = std::move(name)}; }

bool holds_number(const PickleValue::List& numbers, std::size_t number) {
  for (const auto& item : numbers) {
    const auto* whole = std::get_if<std::int64_t>(&item.content);
    if (whole != nullptr && *whole == static_cast<std::int64_t>(number)) return true;
  }
  return false;
}

}  // namespace

ZeroOptimizer::ZeroOptimizer(const std::filesystem::path& folder) : states_(folder) {
  constexpr auto load_weights = "load the weights with load_checkpoint_in_model; the optimizer starts from scratch";
  if (states_.optimizer().is_elastic)
    refuse_optimizer(folder, "it was saved with elastic_checkpoint, whose moments have no padding that is known",
                     load_weights);
  if (states_.optimizer().groups.empty()) refuse_optimizer(folder, "it was saved without ZeRO", load_weights);
  PickleValue::Dict state;
  for (const auto& parameter : states_.parameters()) {
    if (states_.optimizer().moments.empty()) break;  // the optimizer has not stepped
    state.emplace_back(text_value(parameter.name), state_of(parameter));
  }
  PickleValue::List groups;
  for (const auto& options : states_.optimizer().groups) groups.push_back(group_of(options));
  PickleValue::Dict both;
  both.emplace_back(text_value("state"), PickleValue{.content = std::move(state)});
  both.emplace_back(text_value("param_groups"), PickleValue{.content = std::move(groups)});
  value_.content = std::move(both);
}

PickleValue ZeroOptimizer::state_of(const weights::ZeroParameter& parameter) {
  auto state = states_.optimizer().moments[parameter.array].values;
  for (const auto& [moment, tensor] : parameter.moments) {
    auto storage = text::concat(parameter.name, "/", moment);
    tensors_[storage] = &tensor;
    state.emplace_back(text_value(moment), PickleValue{.content = formats::PickledTensor{
                                                           .spec = tensor.spec, .storage = std::move(storage)}});
  }
  return {.content = std::move(state)};
}

/// The group's options, with the names of its parameters. DeepSpeed's own Adam always corrects the bias of its moments
/// unless an option says otherwise, and counts steps in the group as well.
PickleValue ZeroOptimizer::group_of(const PickleValue& options) const {
  PickleValue::Dict group;
  PickleValue::List names;
  const auto* dict = std::get_if<PickleValue::Dict>(&options.content);
  const auto* arrays = options.find("params");
  const auto* numbers = arrays != nullptr ? std::get_if<PickleValue::List>(&arrays->content) : nullptr;
  if (dict == nullptr || numbers == nullptr) refuse_optimizer(path(), "a group of its parameters has no params", "");
  for (const auto& parameter : states_.parameters()) {
    if (holds_number(*numbers, parameter.array)) names.push_back(text_value(parameter.name));
  }
  for (const auto& [key, value] : *dict) {
    const auto* name = std::get_if<std::string>(&key.content);
    const auto* truth = std::get_if<bool>(&value.content);
    if (name != nullptr && *name == "bias_correction" && truth != nullptr && !*truth)
      refuse_optimizer(path(), "its Adam does not correct the bias of its moments, LibTorch's does", "");
    const bool is_own = name != nullptr && (*name == "params" || *name == "step" || *name == "bias_correction");
    if (!is_own) group.emplace_back(key, value);
  }
  group.emplace_back(text_value("params"), PickleValue{.content = std::move(names)});
  return {.content = std::move(group)};
}

at::Tensor ZeroOptimizer::get(const formats::PickledTensor& tensor) const {
  return states_.whole(*tensors_.at(tensor.storage));
}

}  // namespace hortator::accelerator
