#include "accelerator/interop/accelerate/fields.hpp"

#include <hortator/error.hpp>

#include "accelerator/interop/accelerate/python_values.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {

using formats::PickleValue;

void refuse_state(const formats::PickleSource& file, const std::string& what, std::string why, std::string hint) {
  throw Error({.what = text::concat("The optimizer's state in ", file.path(), " does not fit: ", what),
               .why = std::move(why),
               .hint = std::move(hint)});
}

std::string PythonFields::path(std::string_view name) const { return text::concat(prefix_, "/", name); }

const PickleValue* PythonFields::find(std::string_view name) {
  const auto* found = dict_.find(name);
  if (found != nullptr) used_.note(name);
  return found;
}

// Python keeps both betas in one tuple.
const PickleValue* PythonFields::find_number(std::string_view name) {
  const bool is_beta = name == "beta1" || name == "beta2";
  const auto* found = find(is_beta ? "betas" : name);
  if (found == nullptr || !is_beta) return found;
  const auto* betas = items_of(*found);
  if (betas == nullptr || betas->size() != 2) misfit("betas", *found);
  return &(*betas)[name == "beta1" ? 0 : 1];
}

void PythonFields::misfit(std::string_view name, const PickleValue& value) const {
  refuse_state(file_, text::concat(path(name), " is ", value.described()), "this optimizer keeps something else there");
}

template <typename Number>
Number PythonFields::need(std::string_view name, const std::optional<Number>& number) const {
  if (number) return *number;
  misfit(name, *dict_.find(name.starts_with("beta") ? "betas" : name));
}

void PythonFields::field(std::string_view name, double& value) {
  const auto* found = find_number(name);
  out_.put(path(name), found == nullptr ? value : need(name, to_real(file_, *found)));
}

void PythonFields::field(std::string_view name, std::int64_t& value) {
  const auto* found = find_number(name);
  out_.put(path(name), found == nullptr ? value : need(name, to_whole(file_, *found)));
}

void PythonFields::field(std::string_view name, bool& value) {
  const auto* found = find_number(name);
  out_.put(path(name), found == nullptr ? value : need(name, to_whole(file_, *found)) != 0);
}

void PythonFields::field(std::string_view name, at::Tensor& /*value*/) {
  const auto* found = find(name);
  if (found == nullptr || std::holds_alternative<std::nullptr_t>(found->content)) return;
  const auto tensor = to_tensor(file_, *found);
  if (!tensor.defined()) misfit(name, *found);
  out_.put(path(name), tensor);
}

void PythonFields::field(std::string_view name, std::deque<at::Tensor>& /*value*/) {
  const auto* found = find(name);
  const auto* items = found != nullptr ? items_of(*found) : nullptr;
  const std::size_t count = items != nullptr ? items->size() : 0;
  out_.put(path(name) + "/count", count);
  for (std::size_t i = 0; i < count; ++i) out_.put(text::concat(path(name), "/", i), to_tensor(file_, (*items)[i]));
}

std::vector<std::string> PythonFields::unused() const {
  std::vector<std::string> names;
  const auto* dict = std::get_if<PickleValue::Dict>(&dict_.content);
  if (dict == nullptr) misfit("all of it", dict_);
  for (const auto& [key, value] : *dict) {
    const auto* name = std::get_if<std::string>(&key.content);
    if (name != nullptr && !used_.contains(*name)) names.push_back(*name);
  }
  return names;
}

}  // namespace hortator::accelerator
