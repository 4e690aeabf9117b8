#include "accelerator/interop/accelerate/schedule.hpp"

#include <hortator/error.hpp>
#include <string>

#include "accelerator/interop/accelerate/python_values.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using formats::PickleFile;
using formats::PickleValue;

/// The Python name of a schedule's value.
struct Word {
  std::string name;
  std::size_t index = 0;
  bool is_list = false;
};

/// Hortator's names are "step", "base_rates/<group>" and those of a schedule by a metric, "watch/..." and
/// "rates/<group>".
Word word_of(const std::string& ours) {
  const auto slash = ours.find('/');
  const auto folder = ours.substr(0, slash);
  if (folder == "base_rates" || folder == "rates") {
    return {.name = folder == "rates" ? "_last_lr" : "base_lrs",
            .index = std::stoul(ours.substr(slash + 1)),
            .is_list = true};
  }
  if (ours == "watch/best") return {.name = "best"};
  if (ours == "watch/bad") return {.name = "num_bad_epochs"};
  if (ours == "watch/cooldown_left") return {.name = "cooldown_counter"};
  return {.name = "last_epoch"};
}

/// The schedules of a SequentialLR or a ChainedScheduler: all count the same steps from the same rates, and the
/// prepared schedule says what becomes of them.
const PickleValue* first_of_several(const PickleValue& state) {
  const auto* several = state.find("_schedulers");
  const auto* items = several != nullptr ? items_of(*several) : nullptr;
  return items != nullptr && !items->empty() ? &items->front() : nullptr;
}

const PickleValue* find_in(const PickleValue& state, const std::string& name) {
  const auto* value = state.find(name);
  const auto* first = value == nullptr ? first_of_several(state) : nullptr;
  return first != nullptr ? find_in(*first, name) : value;
}

const PickleValue& value_of(const PickleFile& file, const std::string& ours) {
  const auto word = word_of(ours);
  const auto* value = find_in(file.value(), word.name);
  if (value != nullptr && word.is_list) {
    const auto* items = items_of(*value);
    value = items != nullptr && word.index < items->size() ? &(*items)[word.index] : nullptr;
  }
  if (value != nullptr) return *value;
  throw Error({.what = text::concat("The schedule's state in ", file.path(), " has no ", text::quote(word.name),
                                    word.is_list ? text::concat(" for group ", word.index) : ""),
               .why = "it is of another kind than the prepared one",
               .hint = "prepare a schedule of that kind, or load with strict = false and set its step yourself"});
}

void put_number(StateDict& out, const std::string& name, const PickleFile& file, const StateDict::Value& like) {
  const auto& value = value_of(file, name);
  if (std::holds_alternative<std::int64_t>(like)) {
    if (const auto whole = to_whole(file, value)) return out.put(name, *whole);
  } else if (const auto real = to_real(file, value)) {
    return out.put(name, *real);
  }
  throw Error({.what = text::concat("The schedule's state in ", file.path(), " has ", value.described(), " as ",
                                    text::quote(word_of(name).name))});
}

void put_all(StateDict& out, const PickleFile& file, const std::string& name, const PickleValue& value);

void put_part(StateDict& out, const PickleFile& file, const std::string& folder, const std::string& part,
              const PickleValue& value) {
  put_all(out, file, folder.empty() ? part : folder + "/" + part, value);
}

std::string text_of(const PickleValue& key) {
  if (const auto* string = std::get_if<std::string>(&key.content)) return *string;
  const auto* number = std::get_if<std::int64_t>(&key.content);
  return number != nullptr ? std::to_string(*number) : "";
}

void put_all(StateDict& out, const PickleFile& file, const std::string& name, const PickleValue& value) {
  if (const auto* dict = std::get_if<PickleValue::Dict>(&value.content)) {
    for (const auto& [key, item] : *dict) put_part(out, file, name, text_of(key), item);
  } else if (const auto* items = items_of(value)) {
    for (std::size_t i = 0; i < items->size(); ++i) put_part(out, file, name, std::to_string(i), (*items)[i]);
  } else if (const auto* string = std::get_if<std::string>(&value.content)) {
    out.put(name, *string);
  } else if (const auto* real = std::get_if<double>(&value.content)) {
    out.put(name, *real);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value.content)) {
    out.put(name, *whole);
  } else if (const auto* truth = std::get_if<bool>(&value.content)) {
    out.put(name, *truth);
  } else if (const auto* tensor = std::get_if<formats::PickledTensor>(&value.content)) {
    out.put(name, file.get(*tensor));
  } else if (!std::holds_alternative<std::nullptr_t>(value.content)) {
    throw Error({.what = text::concat(text::quote(name), " in ", file.path(), " is ", value.described()),
                 .why = "an object's state here holds numbers, texts and tensors"});
  }
}

}  // namespace

StateDict schedule_from_python(const PickleFile& file, const StateDict& like) {
  StateDict state;
  for (const auto& [name, value] : like.values()) put_number(state, name, file, value);
  return state;
}

StateDict scaler_from_python(const PickleFile& file) {
  StateDict state;
  const auto* scale = file.value().find("scale");
  const auto* tracker = file.value().find("_growth_tracker");
  if (scale == nullptr || tracker == nullptr) return state;  // the scaler was not enabled
  state.put("scale", to_real(file, *scale).value_or(1));
  state.put("growth_tracker", to_whole(file, *tracker).value_or(0));
  return state;
}

StateDict object_from_python(const PickleFile& file) {
  StateDict state;
  put_all(state, file, "", file.value());
  return state;
}

}  // namespace hortator::accelerator
