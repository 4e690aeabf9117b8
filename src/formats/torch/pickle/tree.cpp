#include "core/text/text.hpp"
#include "formats/torch/pickle/stack.hpp"

namespace hortator::formats {
namespace pickle {
namespace {

constexpr int max_depth = 100;
constexpr std::size_t max_text_per_value = 16;  // names are short, and many values repeat them

class TreeBuilder {
 public:
  TreeBuilder(std::size_t max_values, ForeignObjects foreign)
      : left_(max_values),
        text_left_(max_text_per_value * max_values),
        keeps_foreign_(foreign == ForeignObjects::kept) {}

  PickleValue make(Ref object) {
    if (left_-- == 0) throw PickleFault("it holds far more values than it has bytes");
    if (++depth_ > max_depth) throw PickleFault(text::concat("it is nested more than ", max_depth, " levels deep"));
    PickleValue value;
    std::visit([&](const auto& content) { put(value, content); }, object->content);
    --depth_;
    return value;
  }

 private:
  template <typename Plain>
  void put(PickleValue& value, const Plain& plain) {
    value.content = plain;
  }
  void put(PickleValue& value, const std::string& text) {
    charge(text);
    value.content = text;
  }
  void put(PickleValue& value, const Class& object) { put(value, Foreign{.name = object.name}); }
  void put(PickleValue& value, const Storage&) { put(value, Foreign{.name = "torch.storage"}); }
  void put(PickleValue& value, const Tuple& tuple) { value.content = PickleValue::Tuple{list_of(tuple.items)}; }
  void put(PickleValue& value, const List& list) { value.content = list_of(list.items); }
  void put(PickleValue& value, const Dict& dict) {
    PickleValue::Dict made;
    for (const auto& [key, item] : dict.items) {
      auto name = make(key);
      made.emplace_back(std::move(name), make(item));
    }
    value.content = std::move(made);
  }
  void put(PickleValue& value, const Foreign& object) {
    if (!keeps_foreign_) refuse_foreign(object.name);
    charge(object.name);
    value.content = PickleValue::Foreign{.name = object.name, .arguments = list_of(object.arguments)};
  }

  void charge(const std::string& text) {
    if (text.size() > text_left_) throw PickleFault("it repeats far more text than it has bytes");
    text_left_ -= text.size();
  }

  PickleValue::List list_of(const std::vector<Ref>& items) {
    PickleValue::List made;
    for (auto* item : items) made.push_back(make(item));
    return made;
  }

  std::size_t left_;
  std::size_t text_left_;
  bool keeps_foreign_;
  int depth_ = 0;
};

}  // namespace

void refuse_foreign(const std::string& name) {
  throw PickleFault(
      text::concat("it holds an object of ", name, ", which is neither a tensor, a container, a number nor a text"));
}

PickleValue tree_of(Ref root, std::size_t max_values, ForeignObjects foreign) {
  return TreeBuilder(max_values, foreign).make(root);
}

}  // namespace pickle

std::string PickleValue::described() const {
  struct Words {
    std::string operator()(std::nullptr_t) const { return "None"; }
    std::string operator()(bool) const { return "a truth value"; }
    std::string operator()(std::int64_t) const { return "a whole number"; }
    std::string operator()(Huge) const { return "a whole number of more than 64 bits"; }
    std::string operator()(double) const { return "a real number"; }
    std::string operator()(const std::string&) const { return "a text"; }
    std::string operator()(const PickledTensor&) const { return "a tensor"; }
    std::string operator()(const List&) const { return "a list"; }
    std::string operator()(const Tuple&) const { return "a tuple"; }
    std::string operator()(const Dict&) const { return "a dict"; }
    std::string operator()(const Foreign& object) const { return "an object of " + object.name; }
  };
  return std::visit(Words(), content);
}

const PickleValue* PickleValue::find(std::string_view name) const {
  const auto* dict = std::get_if<Dict>(&content);
  if (dict == nullptr) return nullptr;
  for (const auto& [key, value] : *dict) {
    const auto* text = std::get_if<std::string>(&key.content);
    if (text != nullptr && *text == name) return &value;
  }
  return nullptr;
}

}  // namespace hortator::formats
