#include "accelerator/accelerate_optimizer.hpp"

#include <torch/optim/adamw.h>
#include <algorithm>

#include <array>
#include <iterator>
#include <optional>
#include <set>

#include "accelerator/python_values.hpp"
#include "base/text.hpp"
#include "io/file_error.hpp"
#include "train/optimizer_fields.hpp"

namespace hortator::accelerator {
namespace {

using io::PickleFile;
using io::PickleValue;

/// Options of Python's that say how a step is computed, not what comes of it, and what schedules keep in groups.
constexpr std::array<std::string_view, 13> without_meaning_here = {
    "params", "param_names", "foreach",       "fused",        "capturable", "differentiable", "initial_lr",
    "max_lr", "min_lr",      "base_momentum", "max_momentum", "max_iter",   "max_eval"};

[[noreturn]] void refuse_state(const PickleFile& file, const std::string& what, std::string why,
                               std::string hint = "") {
  throw Error({.what = text::concat("the optimizer's state in ", file.path(), " does not fit: ", what),
               .why = std::move(why),
               .hint = std::move(hint)});
}

/// Takes the values of a record's fields out of a dict of Python's, and puts them under their names.
class Translator final : public train::FieldVisitor {
 public:
  Translator(const PickleFile& file, const PickleValue& dict, std::string prefix, StateDict& out)
      : file_(file), dict_(dict), prefix_(std::move(prefix)), out_(out) {}

  void field(std::string_view name, double& value) override {
    const auto* found = find_number(name);
    out_.put(path(name), found == nullptr ? value : need(name, to_real(file_, *found)));
  }
  void field(std::string_view name, std::int64_t& value) override {
    const auto* found = find_number(name);
    out_.put(path(name), found == nullptr ? value : need(name, to_whole(file_, *found)));
  }
  void field(std::string_view name, bool& value) override {
    const auto* found = find_number(name);
    out_.put(path(name), found == nullptr ? value : need(name, to_whole(file_, *found)) != 0);
  }
  void field(std::string_view name, at::Tensor&) override {
    const auto* found = find(name);
    if (found == nullptr || std::holds_alternative<std::nullptr_t>(found->content)) return;
    const auto tensor = to_tensor(file_, *found);
    if (!tensor.defined()) misfit(name, *found);
    out_.put(path(name), tensor);
  }
  void field(std::string_view name, std::deque<at::Tensor>&) override {
    const auto* found = find(name);
    const auto* items = found != nullptr ? items_of(*found) : nullptr;
    const std::size_t count = items != nullptr ? items->size() : 0;
    out_.put(path(name) + "/count", count);
    for (std::size_t i = 0; i < count; ++i) out_.put(text::concat(path(name), "/", i), to_tensor(file_, (*items)[i]));
  }

  /// Names in the dict that no field has asked for.
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    const auto* dict = std::get_if<PickleValue::Dict>(&dict_.content);
    if (dict == nullptr) misfit("all of it", dict_);
    for (const auto& [key, value] : *dict) {
      const auto* name = std::get_if<std::string>(&key.content);
      if (name != nullptr && !used_.contains(*name)) names.push_back(*name);
    }
    return names;
  }

 private:
  std::string path(std::string_view name) const { return text::concat(prefix_, "/", name); }

  const PickleValue* find(std::string_view name) {
    const auto* found = dict_.find(name);
    if (found != nullptr) used_.emplace(name);
    return found;
  }
  /// Python has both betas in one tuple.
  const PickleValue* find_number(std::string_view name) {
    const bool is_beta = name == "beta1" || name == "beta2";
    const auto* found = find(is_beta ? "betas" : name);
    if (found == nullptr || !is_beta) return found;
    const auto* betas = items_of(*found);
    if (betas == nullptr || betas->size() != 2) misfit("betas", *found);
    return &(*betas)[name == "beta1" ? 0 : 1];
  }

  template <typename Number>
  Number need(std::string_view name, const std::optional<Number>& number) const {
    if (number) return *number;
    misfit(name, *dict_.find(name.starts_with("beta") ? "betas" : name));
  }
  [[noreturn]] void misfit(std::string_view name, const PickleValue& value) const {
    refuse_state(file_, text::concat(path(name), " is ", value.described()),
                 "this optimizer keeps something else there");
  }

  const PickleFile& file_;
  const PickleValue& dict_;
  std::string prefix_;
  StateDict& out_;
  std::set<std::string, std::less<>> used_;
};

/// The state dict's own parts.
struct PythonState {
  const PickleValue& state;
  const PickleValue::List& groups;
};

PythonState state_parts_of(const PickleFile& file) {
  const auto* state = file.value().find("state");
  const auto* groups = file.value().find("param_groups");
  const auto* list = groups != nullptr ? items_of(*groups) : nullptr;
  if (state == nullptr || list == nullptr)
    throw io::FileError(
        {.what = text::concat(file.path(), " is no optimizer's state dict: state or param_groups lack")});
  return {*state, *list};
}

/// Options that no field of ours has: those that change nothing are let go.
void check_other_options(const PickleFile& file, const std::vector<std::string>& unused, const PickleValue& group,
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

class OptimizerConversion {
 public:
  OptimizerConversion(const PickleFile& file, const torch::optim::Optimizer& optimizer,
                      const train::ParameterNames& names, std::vector<std::string>& left)
      : file_(file), optimizer_(optimizer), names_(names), left_(left), python_(state_parts_of(file)) {}

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
                   "parameters are told apart by their numbers alone",
                   "give the optimizer the parameters that Python's had, in the same order");
    }
  }

  /// "0/fc1.weight": the number of the model, then the name there. Empty for one that no prepared model has.
  std::string name_of(const at::Tensor& parameter) const {
    const auto found = names_.find(parameter.unsafeGetTensorImpl());
    return found != names_.end() ? found->second : "";
  }

  /// The names that Python's optimizer was given, if it was.
  const PickleValue::List* names_in_group(std::size_t group) const {
    const auto* given = python_.groups[group].find("param_names");
    const auto* list = given != nullptr ? items_of(*given) : nullptr;
    return list != nullptr && list->size() == parameters(group).size() ? list : nullptr;
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
                 "moments are told apart by the order of parameters alone, and would go to others",
                 "register the module's parts in Python's order");
  }

  void convert_options(std::size_t g) {
    const auto options = optimizer_.param_groups()[g].options().clone();
    Translator translator(file_, python_.groups[g], text::concat("groups/", g), out_);
    train::visit_fields(*options, translator);
    check_other_options(file_, translator.unused(), python_.groups[g],
                        dynamic_cast<torch::optim::AdamWOptions*>(options.get()) != nullptr, left_);
  }

  /// The parameter that Python's group has at `place`.
  const at::Tensor& parameter_at(std::size_t g, std::size_t place) const {
    const auto* given = names_in_group(g);
    if (given == nullptr) return parameters(g)[place];
    const auto* name = std::get_if<std::string>(&(*given)[place].content);
    for (const auto& parameter : parameters(g)) {
      const auto here = name_of(parameter);
      if (name != nullptr && here.substr(here.find('/') + 1) == *name) return parameter;
    }
    refuse_state(file_, text::concat("this optimizer has no parameter ", text::quote(name != nullptr ? *name : "")),
                 "Python's optimizer has its moments", "give it the same parameters");
  }

  void convert_moments(std::size_t g) {
    for (std::size_t i = 0; i < parameters(g).size(); ++i) {
      const auto number = to_whole(file_, (*numbers(g))[i]);
      const auto* state = number ? find(python_.state, *number) : nullptr;
      if (state == nullptr) continue;  // it has got no gradient yet
      const auto& parameter = parameter_at(g, i);
      const auto known = name_of(parameter);
      const auto name = known.empty() ? text::concat("group_", g, "_parameter_", i) : known;
      const auto record = train::make_state(optimizer_.param_groups()[g].options());
      Translator translator(file_, *state, "state/" + name, out_);
      train::visit_fields(*record, translator);
      for (const auto& unused : translator.unused()) {
        if (unused == "al") continue;  // of LBFGS: written before it is read
        refuse_state(file_, text::concat("it holds ", text::quote(unused), " for the parameter ", text::quote(name)),
                     "this optimizer keeps no such thing", "construct the optimizer that was saved");
      }
    }
  }

  const PickleFile& file_;
  const torch::optim::Optimizer& optimizer_;
  const train::ParameterNames& names_;
  std::vector<std::string>& left_;
  PythonState python_;
  StateDict out_;
};

}  // namespace

StateDict from_python(const PickleFile& file, const torch::optim::Optimizer& optimizer,
                      const train::ParameterNames& names, const std::vector<std::string>& order,
                      std::vector<std::string>& left) {
  for (const auto& group : optimizer.param_groups()) {
    if (train::make_state(group.options()) != nullptr) continue;
    refuse_state(file, "this optimizer is of a type of your own", "Python's names for its state are not known",
                 "load the model alone (load_checkpoint_in_model)");
  }
  return OptimizerConversion(file, optimizer, names, left).run(order);
}

}  // namespace hortator::accelerator
