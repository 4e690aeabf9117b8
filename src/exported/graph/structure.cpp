#include "exported/graph/structure.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/file/field.hpp"

namespace hortator::exported {

using formats::JsonValue;

class StructureReader {
 public:
  explicit StructureReader(const NamedTuples& named_tuples) : named_tuples_(named_tuples) {}

  Structure read(const Field& field) const {
    Structure structure;
    structure.is_value_ = field.at("type").is_null();
    if (structure.is_value_) return structure;
    for (const auto& child : field.at("children_spec").items()) structure.children_.push_back(read(child));
    structure.keys_ = keys(field, structure.children_.size());
    return structure;
  }

 private:
  /// Keys of a dict, fields of an object; positions where neither is known.
  std::vector<std::string> keys(const Field& field, std::size_t count) const {
    const auto& type = field.at("type").text();
    std::vector<std::string> keys;
    if (const auto known = named_tuples_.find(type); known != named_tuples_.end()) {
      keys = known->second;
    } else if (const auto context = field.at("context"); !context.is_null()) {
      keys = texts_in(context.text(), count);
    }
    if (keys.size() == count) return keys;
    keys.clear();
    for (std::size_t i = 0; i < count; ++i) keys.push_back(std::to_string(i));
    return keys;
  }

  /// The first list of that many texts or numbers in a context: dicts have one, dataclasses have it within another.
  static std::vector<std::string> texts_in(const std::string& context, std::size_t count) {
    try {
      return texts_in(formats::parse_strict_json(context), count);
    } catch (const formats::JsonFault&) {
      return {};  // of a type with a notation of its own
    }
  }

  static std::vector<std::string> texts_in(const JsonValue& context, std::size_t count) {
    const auto* list = std::get_if<JsonValue::Array>(&context.content);
    if (list == nullptr || list->empty()) return {};
    std::vector<std::string> texts;
    for (const auto& item : *list) {
      if (const auto* text = std::get_if<std::string>(&item.content)) texts.push_back(*text);
      if (const auto* number = std::get_if<std::uint64_t>(&item.content)) texts.push_back(std::to_string(*number));
    }
    return texts.size() == count && list->size() == count ? texts : texts_in(list->front(), count);
  }

  const NamedTuples& named_tuples_;
};

namespace {

void collect_names(const Structure& structure, const std::string& prefix, std::vector<std::string>& names) {
  if (structure.is_value()) names.push_back(prefix);
  for (std::size_t i = 0; i < structure.children().size(); ++i) {
    const auto& key = structure.keys()[i];
    collect_names(structure.children()[i], prefix.empty() ? key : text::concat(prefix, ".", key), names);
  }
}

}  // namespace

Structure Structure::parse(const std::string& text, const NamedTuples& named_tuples) {
  try {
    const auto json = formats::parse_strict_json(text);
    const auto items = Field(json, "the structure of the values").items();
    constexpr std::int64_t known_protocol = 1;
    if (items.size() != 2 || items.front().integer() != known_protocol)
      throw ExportFault("the structure of the values has another notation than [1, {...}]");
    return StructureReader(named_tuples).read(items.back());
  } catch (const formats::JsonFault& fault) {
    throw ExportFault(text::concat("the structure of the values is not valid JSON: ", fault.what()));
  }
}

std::size_t Structure::size() const {
  if (is_value_) return 1;
  std::size_t count = 0;
  for (const auto& child : children_) count += child.size();
  return count;
}

std::vector<std::string> Structure::names() const {
  std::vector<std::string> names;
  collect_names(*this, "", names);
  return names;
}

std::vector<std::string> input_names(const Structure& inputs, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  if (inputs.children().size() != 2) throw ExportFault("the inputs are not a tuple of arguments and a dict");
  const auto& positional = inputs.children().front();
  for (std::size_t i = 0; i < positional.children().size(); ++i) {
    const auto& name = i < arguments.size() ? arguments[i] : positional.keys()[i];
    collect_names(positional.children()[i], name, names);
  }
  collect_names(inputs.children().back(), "", names);
  return names;
}

}  // namespace hortator::exported
