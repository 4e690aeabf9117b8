#include "exported/graph/arguments.hpp"

#include <functional>
#include <map>

#include "core/text/text.hpp"
#include "exported/file/types.hpp"
#include "exported/graph/module_stack.hpp"

namespace hortator::exported {
namespace {

using Reader = std::function<Argument(const Field&)>;

Argument none(const Field& /*field*/) { return {}; }
Argument tensor(const Field& field) { return {.content = Reference{field.at("name").text()}}; }

/// A named value, or a number: the members are "as_name" and, for one of them, "as_int".
Argument symbolic(const Field& field) {
  const auto [kind, value] = field.choice();
  if (kind == "as_name") return {.content = Reference{value.text()}};
  if (kind == "as_int") return {.content = value.integer()};
  if (kind == "as_float") return {.content = value.real()};
  if (kind == "as_bool") return {.content = value.flag()};
  value.refuse_feature(text::concat("a symbol given ", text::quote(kind)));
}

Argument optional_tensor(const Field& field) {
  const auto [kind, value] = field.choice();
  return kind == "as_none" ? Argument{} : tensor(value);
}

Argument complex_number(const Field& field) {
  return {.content = c10::complex<double>(field.at("real").real(), field.at("imag").real())};
}

Argument graph(const Field& field) { return {.content = std::make_shared<const Graph>(read_graph(field.at("graph")))}; }

Argument integer(const Field& field) { return {.content = field.integer()}; }
Argument real(const Field& field) { return {.content = field.real()}; }
Argument flag(const Field& field) { return {.content = field.flag()}; }
Argument text_value(const Field& field) { return {.content = field.text()}; }

Reader list_of(Reader read) {
  return [read = std::move(read)](const Field& field) {
    Argument::List list;
    for (const auto& item : field.items()) list.push_back(read(item));
    return Argument{.content = std::move(list)};
  };
}

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> readers = {
      {"as_none", none},
      {"as_tensor", tensor},
      {"as_tensors", list_of(tensor)},
      {"as_int", integer},
      {"as_ints", list_of(integer)},
      {"as_float", real},
      {"as_floats", list_of(real)},
      {"as_string", text_value},
      {"as_strings", list_of(text_value)},
      {"as_sym_int", symbolic},
      {"as_sym_ints", list_of(symbolic)},
      {"as_scalar_type", [](const Field& field) { return Argument{.content = scalar_type_in(field)}; }},
      {"as_memory_format", [](const Field& field) { return Argument{.content = memory_format_in(field)}; }},
      {"as_layout", [](const Field& field) { return Argument{.content = layout_in(field)}; }},
      {"as_device", [](const Field& field) { return Argument{.content = device_in(field)}; }},
      {"as_bool", flag},
      {"as_bools", list_of(flag)},
      {"as_sym_bool", symbolic},
      {"as_sym_bools", list_of(symbolic)},
      {"as_graph", graph},
      {"as_optional_tensors", list_of(optional_tensor)},
      {"as_sym_float", symbolic},
      {"as_sym_floats", list_of(symbolic)},
      {"as_optional_tensor", optional_tensor},
      {"as_complex", complex_number},
      {"as_nested_tensors", list_of(list_of(tensor))},
      {"as_int_lists", list_of(list_of(integer))},
      {"as_float_lists", list_of(list_of(real))}};
  return readers;
}

Node read_node(const Field& field) {
  Node node{.name = field.has("name") ? field.at("name").text() : "",
            .target = field.at("target").text(),
            .position = field.position()};
  for (const auto& input : field.at("inputs").items())
    node.inputs.push_back({.name = input.at("name").text(), .value = read_argument(input.at("arg"))});
  for (const auto& output : field.at("outputs").items()) node.outputs.push_back(read_argument(output));
  if (!field.has("metadata")) return node;
  const auto metadata = field.at("metadata");
  if (const auto modules = modules_around(field); !modules.empty()) node.module = modules.back().path;
  if (metadata.has("stack_trace")) node.source_line = text::first_line(metadata.at("stack_trace").text());
  return node;
}

}  // namespace

std::string Node::to_string() const {
  auto text = text::concat("node ", text::quote(name), " (", target);
  if (!module.empty()) text += ", module " + module;
  if (!source_line.empty()) text += ", " + source_line;
  return text + ")";
}

void each_reference(const Argument& argument, const std::function<void(const std::string&)>& visit) {
  if (const auto* reference = std::get_if<Reference>(&argument.content)) visit(reference->name);
  if (const auto* list = std::get_if<Argument::List>(&argument.content)) {
    for (const auto& item : *list) each_reference(item, visit);
  }
}

Argument read_argument(const Field& field) {
  const auto [kind, value] = field.choice();
  const auto found = readers().find(kind);
  if (found == readers().end()) value.refuse_feature(text::concat("an argument given ", text::quote(kind)));
  return found->second(value);
}

Graph read_graph(const Field& field) {
  Graph graph;
  for (const auto& input : field.at("inputs").items()) graph.inputs.push_back(read_argument(input));
  for (const auto& node : field.at("nodes").items()) graph.nodes.push_back(read_node(node));
  for (const auto& output : field.at("outputs").items()) graph.outputs.push_back(read_argument(output));
  return graph;
}

}  // namespace hortator::exported
