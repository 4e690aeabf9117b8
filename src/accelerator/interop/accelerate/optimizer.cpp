#include "accelerator/interop/accelerate/optimizer.hpp"

#include <torch/optim/adamw.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "accelerator/interop/accelerate/fields.hpp"
#include "accelerator/interop/accelerate/python_values.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::accelerator {
namespace {

using formats::PickleSource;
using formats::PickleValue;

/// Python options that do not change a step's result, and what schedules keep in groups.
constexpr std::array<std::string_view, 13> without_meaning_here = {
    "params", "param_names", "foreach",       "fused",        "capturable", "differentiable", "initial_lr",
    "max_lr", "min_lr",      "base_momentum", "max_momentum", "max_iter",   "max_eval"};

/// The two parts of a state dict.
struct PythonState {
  const PickleValue& state;
  const PickleValue::List& groups;
};

PythonState state_parts_of(const PickleSource& file) {
  const auto* state = file.value().find("state");
  const auto* groups = file.value().find("param_groups");
  const auto* list = groups != nullptr ? items_of(*groups) : nullptr;
  if (state == nullptr || list == nullptr)
    throw formats::FileError(
        {.what = text::concat(file.path(), " is not an optimizer's state dict: state or param_groups is missing")});
  return {*state, *list};
}

/// Handles options without a field here: those that change nothing are ignored.
void check_other_options(const PickleSource& file, const std::vector<std::string>& unused, const PickleValue& group,
                         bool is_adamw, std::vector<std::string>& left) {
  for (const auto& name : unused) {
    const auto& value = *group.find(name);
    const auto number = to_real(file, value);
    const bool is_off = std::holds_alternative<std::nullptr_t>(value.content) || (number && *number == 0);
    if (name == "decoupled_weight_decay") {
      if (is_off == is_adamw)
        refuse_state(file, is_off ? "it was not saved by AdamW" : "it was saved by AdamW",
                     "weight decay would mean something else", "construct the optimizer that was saved");
    } else if (name == "maximize" && !is_off) {
      refuse_state(file, "it maximises", "LibTorch's optimizers minimise", "train on the negative loss");
    } else if (!is_off && std::ranges::find(without_meaning_here, name) == without_meaning_here.end()) {
      left.push_back(text::concat("the optimizer's option ", text::quote(name), ", which LibTorch's has not"));
    }
  }
}

bool is_name(const PickleValue& value) { return std::holds_alternative<std::string>(value.content); }

class OptimizerConversion {
 public:
  OptimizerConversion(const PickleSource& file, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names, const std::function<StateDict(const StateDict&)>& own,
                      std::vector<std::string>& left)
      : file_(file), optimizer_(optimizer), names_(names), own_(own), left_(left), python_(state_parts_of(file)) {}

  StateDict run(const std::vector<std::string>& order) {
    check_groups();
    check_order(order);
    for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
      convert_options(g);
      convert_moments(g);
    }
    return std::move(out_);
  }

 private:
  const std::vector<at::Tensor>& parameters(std::size_t group) const {
    return optimizer_.param_groups()[group].params();
  }
  const PickleValue::List* numbers(std::size_t group) const {
    const auto* params = python_.groups[group].find("params");
    return params != nullptr ? items_of(*params) : nullptr;
  }

  void check_groups() const {
    const auto here = optimizer_.param_groups().size();
    if (python_.groups.size() != here) {
      refuse_state(file_,
                   text::concat("it has ", text::count(static_cast<long long>(python_.groups.size()), "group"),
                                " of parameters, this optimizer has ", here),
                   "each has options of its own", "make the same groups here");
    }
    for (std::size_t g = 0; g < here; ++g) {
      const auto* params = numbers(g);
      const auto count = params != nullptr ? params->size() : 0;
      if (count == parameters(g).size()) continue;
      refuse_state(file_,
                   text::concat("its group ", g, " has ", text::count(static_cast<long long>(count), "parameter"),
                                ", this optimizer's has ", parameters(g).size()),
                   "parameters are identified only by their numbers",
                   "give the optimizer the parameters that Python's had, in the same order");
    }
  }

  /// The name "0/fc1.weight": the model's number, then the name in it. Empty if no prepared model has the parameter.
  std::string name_of(const at::Tensor& parameter) const {
    const auto found = names_.find(parameter.unsafeGetTensorImpl());
    return found != names_.end() ? found->second : "";
  }

  /// The parameters' names, if Python's optimizer was given them or FSDP has replaced the numbers by names.
  const PickleValue::List* names_in_group(std::size_t group) const {
    for (const auto* word : {"param_names", "params"}) {
      const auto* given = python_.groups[group].find(word);
      const auto* list = given != nullptr ? items_of(*given) : nullptr;
      if (list != nullptr && list->size() == parameters(group).size() && std::ranges::all_of(*list, is_name))
        return list;
    }
    return nullptr;
  }

  /// The state of a parameter, by its number or its name; null if it has had no gradient yet.
  const PickleValue* state_of(const PickleValue& key) const {
    if (is_name(key)) return python_.state.find(std::get<std::string>(key.content));
    const auto number = to_whole(file_, key);
    if (!number) return nullptr;
    const auto* state = find(python_.state, *number);
    return state != nullptr ? state : python_.state.find(std::to_string(*number));  // paths of parts are texts
  }

  void check_order(const std::vector<std::string>& order) const {
    if (optimizer_.param_groups().size() != 1 || names_in_group(0) != nullptr) return;
    std::vector<std::string> here;
    for (const auto& parameter : parameters(0)) {
      const auto name = name_of(parameter);
      if (!name.starts_with("0/")) return;
      here.push_back(name.substr(2));
    }
    std::vector<std::string> there;
    std::ranges::copy_if(order, std::back_inserter(there),
                         [&](const auto& name) { return std::ranges::find(here, name) != here.end(); });
    if (there.size() != here.size() || there == here) return;
    const auto [one, other] = std::ranges::mismatch(here, there);
    refuse_state(file_,
                 text::concat("here ", text::quote(*one), " stands where Python's model has ", text::quote(*other)),
                 "moments are identified only by the order of parameters, and would go to other parameters",
                 "register the module's parts in Python's order");
  }

  void convert_options(std::size_t g) {
    const auto options = optimizer_.param_groups()[g].options().clone();
    PythonFields fields(file_, python_.groups[g], text::concat("groups/", g), out_);
    step::visit_fields(*options, fields);
    check_other_options(file_, fields.unused(), python_.groups[g],
                        dynamic_cast<torch::optim::AdamWOptions*>(options.get()) != nullptr, left_);
  }

  /// The parameter at index `place` of Python's group.
  const at::Tensor& parameter_at(std::size_t g, std::size_t place) const {
    const auto* given = names_in_group(g);
    if (given == nullptr) return parameters(g)[place];
    const auto& name = std::get<std::string>((*given)[place].content);
    for (const auto& parameter : parameters(g)) {
      const auto here = name_of(parameter);
      if (here.substr(here.find('/') + 1) == name) return parameter;
    }
    refuse_state(file_, text::concat("this optimizer has no parameter ", text::quote(name)),
                 "Python's optimizer has its moments", "give it the same parameters");
  }

  void convert_moments(std::size_t g) {
    for (std::size_t i = 0; i < parameters(g).size(); ++i) {
      const auto* state = state_of((*numbers(g))[i]);
      if (state == nullptr) continue;
      const auto& parameter = parameter_at(g, i);
      const auto known = name_of(parameter);
      const auto name = known.empty() ? text::concat("group_", g, "_parameter_", i) : known;
      const auto record = step::make_state(optimizer_.param_groups()[g].options());
      StateDict moments;
      PythonFields fields(file_, *state, "state/" + name, moments);
      step::visit_fields(*record, fields);
      for (const auto& unused : fields.unused()) {
        if (unused == "al") continue;  // of LBFGS: written before it is read
        refuse_state(file_, text::concat("it holds ", text::quote(unused), " for the parameter ", text::quote(name)),
                     "this optimizer keeps no such thing", "construct the optimizer that was saved");
      }
      out_.put_all("state", own_(moments).under("state"));
    }
  }

  const PickleSource& file_;
  const torch::optim::Optimizer& optimizer_;
  const step::ParameterNames& names_;
  const std::function<StateDict(const StateDict&)>& own_;
  std::vector<std::string>& left_;
  PythonState python_;
  StateDict out_;
};

}  // namespace

StateDict from_python(const PickleSource& file, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names, const std::vector<std::string>& order,
                      const std::function<StateDict(const StateDict&)>& own, std::vector<std::string>& left) {
  for (const auto& group : optimizer.param_groups()) {
    if (step::make_state(group.options()) != nullptr) continue;
    refuse_state(file, "this optimizer is of a type of your own", "Python's names for its state are not known",
                 "load the model alone (load_checkpoint_in_model)");
  }
  return OptimizerConversion(file, optimizer, names, own, left).run(order);
}

}  // namespace hortator::accelerator
