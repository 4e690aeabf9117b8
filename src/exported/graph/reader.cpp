#include "exported/graph/reader.hpp"

#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/file/field.hpp"
#include "exported/file/types.hpp"
#include "exported/graph/arguments.hpp"
#include "exported/graph/module_stack.hpp"

namespace hortator::exported {
namespace {

void require_known_version(const Field& program) {
  constexpr std::int64_t known_major = 8;
  const auto version = program.at("schema_version");
  const auto major = version.at("major").integer();
  if (major != known_major) {
    throw ExportFault(text::concat("its schema has version ", major, ".", version.at("minor").integer(),
                                   ", and version ", known_major, " is supported"),
                      "export the model again with PyTorch 2.9 or newer");
  }
  constexpr std::array dialects = {"TRAINING", "ATEN"};
  for (const auto& dialect : program.at("verifiers").items()) {
    if (std::ranges::find(dialects, dialect.text()) == dialects.end())
      dialect.refuse_feature(text::concat("the dialect ", text::quote(dialect.text())));
  }
}

Expression size_in(const Field& field) {
  const auto [kind, value] = field.choice();
  if (kind == "as_int") return Expression::number(value.integer());
  if (kind != "as_expr") value.refuse_feature(text::concat("a size given ", text::quote(kind)));
  return Expression::parse(value.at("expr_str").text());
}

InputShape shape_in(const Field& tensor) {
  InputShape shape{.type = scalar_type_in(tensor.at("dtype"))};
  for (const auto& size : tensor.at("sizes").items()) shape.sizes.push_back(size_in(size));
  if (layout_in(tensor.at("layout")) != c10::kStrided) tensor.refuse_feature("a sparse input");
  return shape;
}

InputSpec user_input(const Field& spec, const Field& graph) {
  const auto [kind, value] = spec.at("arg").choice();
  if (kind == "as_tensor") {
    const auto& name = value.at("name").text();
    return {.kind = InputSpec::Kind::user, .name = name, .shape = shape_in(graph.at("tensor_values").at(name))};
  }
  if (kind == "as_sym_int") {
    const auto& name = value.at("as_name").text();
    return {.kind = InputSpec::Kind::user, .name = name, .number = size_in(graph.at("sym_int_values").at(name))};
  }
  if (kind == "as_custom_obj") value.refuse_feature("an object of a class as input");
  return {.kind = InputSpec::Kind::fixed, .name = ""};
}

InputSpec read_input(const Field& field, const Field& graph) {
  const auto [kind, spec] = field.choice();
  using Kind = InputSpec::Kind;
  if (kind == "parameter") return {.kind = Kind::parameter, .name = spec.at("parameter_name").text()};
  if (kind == "buffer") {
    return {.kind = Kind::buffer,
            .name = spec.at("buffer_name").text(),
            .is_persistent = !spec.has("persistent") || spec.at("persistent").flag()};
  }
  if (kind == "tensor_constant") return {.kind = Kind::constant, .name = spec.at("tensor_constant_name").text()};
  if (kind == "user_input") return user_input(spec, graph);
  if (kind == "constant_input") return {.kind = Kind::fixed, .name = ""};
  spec.refuse_feature(text::concat("an input given ", text::quote(kind)));
}

OutputSpec read_output(const Field& field) {
  const auto [kind, spec] = field.choice();
  using Kind = OutputSpec::Kind;
  if (kind == "user_output" || kind == "loss_output") return {.kind = Kind::user};
  if (kind == "buffer_mutation") return {.kind = Kind::buffer, .name = spec.at("buffer_name").text()};
  if (kind == "parameter_mutation") return {.kind = Kind::parameter, .name = spec.at("parameter_name").text()};
  if (kind == "user_input_mutation") return {.kind = Kind::input, .name = spec.at("user_input_name").text()};
  spec.refuse_feature(text::concat("an output given ", text::quote(kind)));
}

NamedTuples named_tuples_in(const Field& graph_module) {
  NamedTuples named_tuples;
  if (!graph_module.has("treespec_namedtuple_fields")) return named_tuples;
  for (const auto& [type, definition] : graph_module.at("treespec_namedtuple_fields").members()) {
    for (const auto& name : definition.at("field_names").items()) named_tuples[type].push_back(name.text());
  }
  return named_tuples;
}

/// Names of the user's values, from the signature of the outermost module.
void read_names(Program& program, const Field& graph_module) {
  const auto named_tuples = named_tuples_in(graph_module);
  for (const auto& call : graph_module.at("module_call_graph").items()) {
    if (!call.at("fqn").text().empty() || !call.has("signature")) continue;
    const auto signature = call.at("signature");
    std::vector<std::string> arguments;
    if (signature.has("forward_arg_names")) {
      for (const auto& name : signature.at("forward_arg_names").items()) arguments.push_back(name.text());
    }
    program.input_names = input_names(Structure::parse(signature.at("in_spec").text(), named_tuples), arguments);
    program.output_names = Structure::parse(signature.at("out_spec").text(), named_tuples).names();
    return;
  }
  graph_module.refuse("the signature of the model is missing");
}

void require_consistent(const Program& program, const Field& graph_module) {
  using In = InputSpec::Kind;
  if (program.inputs.size() != program.graph.inputs.size())
    graph_module.refuse("the graph has other inputs than the signature");
  if (program.outputs.size() != program.graph.outputs.size())
    graph_module.refuse("the graph has other outputs than the signature");
  const auto inputs = std::ranges::count_if(
      program.inputs, [](const InputSpec& input) { return input.kind == In::user || input.kind == In::fixed; });
  const auto outputs = std::ranges::count(program.outputs, OutputSpec::Kind::user, &OutputSpec::kind);
  if (inputs != std::ssize(program.input_names))
    graph_module.refuse("the structure of the inputs has another number of values");
  if (outputs != std::ssize(program.output_names))
    graph_module.refuse("the structure of the outputs has another number of values");
}

std::map<std::string, SizeRange> ranges_in(const Field& field) {
  std::map<std::string, SizeRange> ranges;
  for (const auto& [symbol, range] : field.members()) {
    auto& limits = ranges[symbol];
    if (range.has("min_val")) limits.min = range.at("min_val").integer();
    if (range.has("max_val")) limits.max = range.at("max_val").integer();
  }
  return ranges;
}

Program read_program(const Field& root) {
  require_known_version(root);
  const auto graph_module = root.at("graph_module");
  const auto graph = graph_module.at("graph");
  Program program;
  program.torch_version = root.has("torch_version") ? root.at("torch_version").text() : "";
  program.graph = read_graph(graph);
  const auto signature = graph_module.at("signature");
  for (const auto& input : signature.at("input_specs").items()) program.inputs.push_back(read_input(input, graph));
  for (const auto& output : signature.at("output_specs").items()) program.outputs.push_back(read_output(output));
  read_names(program, graph_module);
  require_consistent(program, graph_module);
  program.ranges = ranges_in(root.at("range_constraints"));
  if (root.has("guards_code"))
    for (const auto& guard : root.at("guards_code").items()) program.guards.push_back(guard.text());
  program.module_classes = module_classes(graph);
  return program;
}

}  // namespace

Program parse_program(std::string_view json) {
  try {
    const auto value = formats::parse_strict_json(json);
    return read_program(Field(value));
  } catch (const formats::JsonFault& fault) {
    throw ExportFault(text::concat("its description of the model is not valid JSON: ", fault.what()));
  }
}

}  // namespace hortator::exported
