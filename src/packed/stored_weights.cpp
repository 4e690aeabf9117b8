#include "packed/stored_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::packed {
namespace {

using weights::WeightSource;
using Json = nlohmann::json;

constexpr std::string_view end_of_weight = ".weight";

[[noreturn]] void refuse(const WeightSource& source, const std::string& name, std::string_view fault) {
  throw formats::FileError(
      {.what = text::concat("The packed weight ", text::quote(name), " of ", source.path(), " ", fault),
       .why = "its values cannot be known",
       .hint = "pack the model again: bitsandbytes' nf4 and int8, and save_pretrained(), are read"});
}

/// The JSON text that is stored as bytes.
Json state_of(const WeightSource& source, const std::string& weight, const std::string& name) {
  const auto spec = source.spec(name);
  constexpr std::int64_t most = 1 << 16;
  if (spec.type != at::kByte || spec.elements() > most) refuse(source, weight, "has a description that is not bytes");
  const auto bytes = source.tensor(name).contiguous();
  const auto* begin = bytes.const_data_ptr<std::uint8_t>();
  auto json = Json::parse(begin, begin + bytes.numel(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse(source, weight, "has a description that is not a JSON object");
  return json;
}

at::ScalarType type_named(const WeightSource& source, const std::string& weight, const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "float16") return at::kHalf;
  if (name == "bfloat16") return at::kBFloat16;
  refuse(source, weight, text::concat("has the type ", text::quote(name), ", expected float32, float16 or bfloat16"));
}

/// A tensor beside the weight, whose size must be right: files may be hostile.
at::Tensor beside(const WeightSource& source, const std::string& weight, const std::string& name, at::ScalarType type,
                  std::int64_t elements) {
  const auto& names = source.names();
  if (std::ranges::find(names, name) == names.end()) refuse(source, weight, text::concat("has no ", text::quote(name)));
  const auto spec = source.spec(name);
  if (spec.type != type || spec.elements() != elements)
    refuse(source, weight,
           text::concat("has ", text::quote(name), " as ", formats::to_string(spec), ", expected ", elements,
                        " elements of ", type));
  return source.tensor(name).flatten().contiguous();
}

constexpr std::int64_t max_side = std::int64_t{1} << 28;

/// 0 if the description has none.
std::int64_t whole_number_in(const Json& state, const char* key) {
  const auto found = state.find(key);
  return found != state.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// bitsandbytes writes the values of numbers beside the weight: they must be those of the format.
void require_values(const WeightSource& source, const std::string& weight, const float* of_format) {
  const auto name = weight + ".quant_map";
  const auto& names = source.names();
  if (std::ranges::find(names, name) == names.end()) return;
  constexpr std::int64_t values = 16;
  const auto expected = at::from_blob(const_cast<float*>(of_format), {values});
  if (!at::allclose(beside(source, weight, name, at::kFloat, values), expected, 0, 1e-6))
    refuse(source, weight, text::concat("has other values in ", text::quote(name), " than those of its format"));
}

/// Scales that are packed themselves (double quantisation).
at::Tensor unpacked_scales(const WeightSource& source, const std::string& weight, const Json& state,
                           std::int64_t count) {
  const auto block = whole_number_in(state, "nested_blocksize");
  if (block < 1 || block > max_side) refuse(source, weight, "has no valid nested_blocksize");
  constexpr std::int64_t codes = 256;
  const auto numbers = beside(source, weight, weight + ".absmax", at::kByte, count).to(at::kLong);
  const auto largest = beside(source, weight, weight + ".nested_absmax", at::kFloat, (count + block - 1) / block);
  const auto map = beside(source, weight, weight + ".nested_quant_map", at::kFloat, codes);
  if (!state.contains("nested_offset") || !state.at("nested_offset").is_number())
    refuse(source, weight, "has no valid nested_offset");
  const auto offset = state.at("nested_offset").get<double>();
  const auto block_of_scale = at::arange(count, at::kLong).div(block, "floor");
  return map.index_select(0, numbers) * largest.index_select(0, block_of_scale) + offset;
}

struct StoredShape {
  std::int64_t outputs, inputs, group;
  at::ScalarType type;
};

StoredShape shape_in(const WeightSource& source, const std::string& weight, const Json& state) {
  const auto sides = state.contains("shape") && state.at("shape").is_array() ? state.at("shape") : Json::array();
  const bool is_matrix =
      sides.size() == 2 && std::ranges::all_of(sides, [](const Json& side) {
        return side.is_number_integer() && side.get<std::int64_t>() >= 1 && side.get<std::int64_t>() <= max_side;
      });
  if (!is_matrix) refuse(source, weight, text::concat("has the shape ", sides.dump(), ", expected two sizes"));
  const auto group = whole_number_in(state, "blocksize");
  if (group < 2 || group > max_side || group % 2 != 0) refuse(source, weight, "has no valid blocksize");
  const auto type =
      state.contains("dtype") && state.at("dtype").is_string() ? state.at("dtype").get<std::string>() : "";
  return {.outputs = sides[0].get<std::int64_t>(),
          .inputs = sides[1].get<std::int64_t>(),
          .group = group,
          .type = type_named(source, weight, type)};
}

std::optional<WeightFormat> format_stored_as(std::string_view state) {
  int number = 0;
  for (const auto* format : formats()) {
    const auto* own = format->stored().state;
    if (own != nullptr && own == state) return static_cast<WeightFormat>(number);
    ++number;
  }
  return {};
}

at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.contiguous().view(at::kByte).clone(); }

}  // namespace

StoredWeights::StoredWeights(std::unique_ptr<WeightSource> source) : source_(std::move(source)) {
  std::set<std::string> beside_weights;
  const auto add_beside = [&](const std::string& weight) {
    for (const auto* end : {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"})
      beside_weights.insert(weight + end);
  };
  for (const auto& name : source_->names()) {
    const auto state = name.find(".quant_state.");
    if (state != std::string::npos) {
      const auto weight = name.substr(0, state);
      const auto format = format_stored_as(name.substr(state));
      if (!format) refuse(*source_, weight, text::concat("is packed as ", text::quote(name.substr(state + 1))));
      add_groups(weight, name, *format);
      add_beside(weight);
      beside_weights.insert(name);
    } else if (name.ends_with(".SCB")) {
      const auto layer = name.substr(0, name.size() - std::string_view(".SCB").size());
      add_int8(layer);
      beside_weights.insert({name, layer + ".weight_format"});
    }
  }
  for (const auto& name : source_->names())
    if (!beside_weights.contains(name)) names_.push_back(name);
}

void StoredWeights::add_groups(const std::string& weight, const std::string& state_name, WeightFormat format) {
  const auto state = state_of(*source_, weight, state_name);
  const auto shape = shape_in(*source_, weight, state);
  StoredLayer layer{
      .layout = {.format = format, .outputs = shape.outputs, .inputs = shape.inputs, .group = shape.group},
      .type = shape.type};
  const auto& layout = layer.layout;
  const auto stored = layout.numbers().stored();
  if (stored.values != nullptr) require_values(*source_, weight, stored.values);
  const bool is_nested = stored.scale_type == at::kFloat && state.contains("nested_blocksize");
  const auto numbers_of_scale = 4 / static_cast<std::int64_t>(c10::elementSize(stored.scale_type));
  layer.scales = as_bytes(
      is_nested ? unpacked_scales(*source_, weight, state, layout.scales())
                : beside(*source_, weight, weight + ".absmax", stored.scale_type, numbers_of_scale * layout.scales()));
  const auto numbers = source_->spec(weight);
  if (numbers.type != at::kByte || numbers.elements() != layout.number_bytes())
    refuse(*source_, weight,
           text::concat("is ", formats::to_string(numbers), ", expected ", layout.number_bytes(), " bytes"));
  layers_.emplace(weight, std::move(layer));
}

void StoredWeights::add_int8(const std::string& layer_name) {
  const auto weight = layer_name + std::string(end_of_weight);
  const auto& names = source_->names();
  if (std::ranges::find(names, weight) == names.end()) return;
  const auto spec = source_->spec(weight);
  if (spec.type != at::kChar || spec.shape.size() != 2 || spec.elements() == 0)
    refuse(*source_, weight, text::concat("is ", formats::to_string(spec), ", expected a matrix of int8"));
  const auto format_name = layer_name + ".weight_format";
  if (std::ranges::find(names, format_name) != names.end() &&
      beside(*source_, weight, format_name, at::kByte, 1).item<int>() != 0)
    refuse(*source_, weight, "has a weight_format other than 0 (row)");
  layers_.emplace(
      weight,
      StoredLayer{.layout = {.format = WeightFormat::int8, .outputs = spec.shape[0], .inputs = spec.shape[1]},
                  .scales = as_bytes(beside(*source_, weight, layer_name + ".SCB", at::kFloat, spec.shape[0]))});
}

formats::TensorSpec StoredWeights::spec(const std::string& name) const {
  const auto layer = layers_.find(name);
  if (layer == layers_.end()) return source_->spec(name);
  return {.type = at::kByte, .shape = {layer->second.layout.bytes(), 1}};
}

void StoredWeights::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto found = layers_.find(name);
  if (found == layers_.end()) return source_->read(name, elements, to);
  const auto& [layout, type, scales] = found->second;
  const auto of_scales = layout.scale_bytes();
  if (elements.begin < of_scales) {
    const auto end = std::min(elements.end, of_scales);
    const auto bytes = static_cast<std::size_t>(end - elements.begin);
    std::memcpy(to, scales.const_data_ptr<std::uint8_t>() + elements.begin, bytes);
    to += bytes;
    elements.begin = end;
  }
  if (elements.size() > 0) source_->read(name, {elements.begin - of_scales, elements.end - of_scales}, to);
}

std::optional<weights::FileSpan> StoredWeights::span(const std::string& name) const {
  return layers_.contains(name) ? std::nullopt : source_->span(name);
}

at::Tensor StoredWeights::tensor(const std::string& name) const {
  return layers_.contains(name) ? WeightSource::tensor(name) : source_->tensor(name);
}

}  // namespace hortator::packed
