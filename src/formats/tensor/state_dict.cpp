#include <hortator/training/state_dict.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

template <typename T>
constexpr std::string_view kind = "text";
template <>
constexpr std::string_view kind<std::int64_t> = "a whole number";
template <>
constexpr std::string_view kind<double> = "a real number";
template <>
constexpr std::string_view kind<at::Tensor> = "a tensor";

std::string_view kind_of(const StateDict::Value& value) {
  return std::visit([]<typename T>(const T&) { return kind<T>; }, value);
}

[[noreturn]] void throw_absent(const std::string& name, const std::map<std::string, StateDict::Value>& values) {
  std::vector<std::string> known;
  for (const auto& [other, value] : values) known.push_back(other);
  throw Error({.what = "The state has no entry " + text::quote(name),
               .why = "it was saved by another version of the object, or under another name",
               .hint = known.empty() ? "it is empty" : text::suggestion(name, known)});
}

}  // namespace

void StateDict::put_value(const std::string& name, Value value) {
  const auto* tensor = std::get_if<at::Tensor>(&value);
  if (name.empty() || (tensor != nullptr && !tensor->defined())) {
    throw UsageError({.what = tensor != nullptr ? "The tensor put as " + text::quote(name) + " is undefined"
                                                : "A value was put without a name",
                      .why = "it could not be saved",
                      .hint = "leave absent values out and call contains() when you read the state"});
  }
  values_.insert_or_assign(name, std::move(value));
}

template <typename T>
T StateDict::get_as(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw_absent(name, values_);
  if (const auto* value = std::get_if<T>(&found->second)) return *value;
  throw Error({.what = text::concat("The entry ", text::quote(name), " of the state is ", kind_of(found->second),
                                    ", not ", kind<T>),
               .why = "it was saved from another type",
               .hint = "put and get each name with the same type"});
}

template HORTATOR_API std::int64_t StateDict::get_as(const std::string&) const;
template HORTATOR_API double StateDict::get_as(const std::string&) const;
template HORTATOR_API std::string StateDict::get_as(const std::string&) const;
template HORTATOR_API at::Tensor StateDict::get_as(const std::string&) const;

std::int64_t StateDict::get_integer(const std::string& name, std::int64_t min, std::int64_t max) const {
  const auto value = get_as<std::int64_t>(name);
  if (min <= value && value <= max) return value;
  throw Error({.what = text::concat("The entry ", text::quote(name), " of the state is ", value),
               .why = text::concat("the requested type ends at ", value < min ? min : max),
               .hint = "get it as std::int64_t"});
}

void StateDict::put_all(const std::string& prefix, const StateDict& part) {
  for (const auto& [name, value] : part.values_) put_value(prefix + "/" + name, value);
}

StateDict StateDict::under(const std::string& prefix) const {
  const std::string folder = prefix + "/";
  StateDict part;
  for (auto entry = values_.lower_bound(folder); entry != values_.end() && entry->first.starts_with(folder); ++entry) {
    part.put_value(entry->first.substr(folder.size()), entry->second);
  }
  return part;
}

}  // namespace hortator
