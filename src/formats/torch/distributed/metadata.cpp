#include "formats/torch/distributed/metadata.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/pickle/types.hpp"

namespace hortator::formats {
namespace {

using Numbers = std::vector<std::int64_t>;

[[noreturn]] void fail(std::string_view what) { throw PickleFault(text::concat("its metadata ", what)); }

/// The attributes of an object: what Python's pickle sets last.
const PickleValue& attributes_of(const PickleValue& value, std::string_view type) {
  const auto* object = std::get_if<PickleValue::Foreign>(&value.content);
  if (object == nullptr || !object->name.ends_with(type) || object->arguments.empty())
    fail(text::concat("holds ", value.described(), " where an object of ", type, " stands"));
  return object->arguments.back();
}

const PickleValue& attribute(const PickleValue& attributes, std::string_view name) {
  if (const auto* found = attributes.find(name)) return *found;
  fail(text::concat("has no ", text::quote(std::string(name))));
}

template <typename Content>
const Content& as(const PickleValue& value, std::string_view wanted) {
  if (const auto* content = std::get_if<Content>(&value.content)) return *content;
  fail(text::concat("holds ", value.described(), ", not ", wanted));
}

std::int64_t count_of(const PickleValue& value) {
  const auto number = as<std::int64_t>(value, "a whole number");
  if (number < 0) fail("holds a negative size");
  return number;
}

Numbers shape_of(const PickleValue& value) {
  Numbers shape;
  for (const auto& item : as<PickleValue::Tuple>(value, "a shape").items) shape.push_back(count_of(item));
  return shape;
}

constexpr std::size_t max_parts = 65'536;                                     // of a tensor: one a rank
constexpr auto max_elements = std::numeric_limits<std::int64_t>::max() / 16;  // of the largest type

std::int64_t product_of(const Numbers& sizes) {
  std::int64_t product = 1;
  for (const auto size : sizes) {
    if (__builtin_mul_overflow(product, size, &product) || product > max_elements)
      fail("holds a tensor of more elements than memory has");
  }
  return product;
}

/// TensorProperties is a tuple whose first item is the type.
at::ScalarType type_of(const PickleValue& properties) {
  const auto& items = as<PickleValue::Tuple>(attributes_of(properties, "TensorProperties"), "properties").items;
  if (items.empty()) fail("has a tensor without a type");
  const auto& name = as<PickleValue::Foreign>(items.front(), "a type").name;
  if (const auto type = torch_type_named(name)) return *type;
  fail(text::concat("has a tensor of the unknown type ", name));
}

void require_within(const std::string& name, const TensorSpec& spec, const DistributedPart& part) {
  const auto dimensions = spec.shape.size();
  bool is_within = part.offsets.size() == dimensions && part.sizes.size() == dimensions;
  for (std::size_t i = 0; is_within && i < dimensions; ++i)
    is_within = part.sizes[i] <= spec.shape[i] && part.offsets[i] <= spec.shape[i] - part.sizes[i];
  if (!is_within) fail(text::concat("places a part of ", text::quote(name), " outside of it"));
}

bool overlap(const DistributedPart& one, const DistributedPart& other) {
  for (std::size_t i = 0; i < one.sizes.size(); ++i) {
    if (one.offsets[i] + one.sizes[i] <= other.offsets[i] || other.offsets[i] + other.sizes[i] <= one.offsets[i])
      return false;
  }
  return true;
}

/// Parts without overlap that have as many elements as the tensor fill it.
void require_filled(const std::string& name, const DistributedTensor& tensor) {
  std::int64_t elements = 0;
  bool fills = true;
  for (const auto& part : tensor.parts) fills = fills && !__builtin_add_overflow(elements, part.elements(), &elements);
  fills = fills && elements == product_of(tensor.spec.shape);
  const auto first_of = [](const DistributedPart& part) { return part.offsets.empty() ? 0 : part.offsets.front(); };
  for (std::size_t i = 0; fills && elements > 0 && i < tensor.parts.size(); ++i) {
    const auto& part = tensor.parts[i];
    const auto end = part.sizes.empty() ? 1 : part.offsets.front() + part.sizes.front();
    for (auto j = i + 1; fills && j < tensor.parts.size() && first_of(tensor.parts[j]) < end; ++j)
      fills = !overlap(part, tensor.parts[j]);
  }
  if (!fills) fail(text::concat("has parts of ", text::quote(name), " that do not fill it exactly"));
}

/// Where values are: by their key, and of a tensor's part its place in the tensor.
struct Places {
  std::map<std::pair<std::string, Numbers>, DistributedPlace> parts = {};
  std::map<std::string, DistributedPlace> objects = {};
};

DistributedPlace place_of(const PickleValue& storage) {
  const auto& attributes = attributes_of(storage, "_StorageInfo");
  DistributedPlace place{.file = as<std::string>(attribute(attributes, "relative_path"), "a file name"),
                         .begin = static_cast<std::uint64_t>(count_of(attribute(attributes, "offset"))),
                         .bytes = static_cast<std::uint64_t>(count_of(attribute(attributes, "length")))};
  const auto* transforms = attributes.find("transform_descriptors");
  if (transforms != nullptr && !std::holds_alternative<std::nullptr_t>(transforms->content))
    fail("has parts that are compressed or encrypted, which cannot be read");
  constexpr std::string_view separators("/\\\0", 3);
  if (place.file.empty() || place.file == "." || place.file == ".." ||
      place.file.find_first_of(separators) != std::string::npos)
    fail(text::concat("names the file ", text::quote(place.file), ", which is not in its folder"));
  return place;
}

Places places_in(const PickleValue& metadata) {
  Places places;
  for (const auto& [key, storage] : as<PickleValue::Dict>(attribute(metadata, "storage_data"), "a dict")) {
    const auto& index = attributes_of(key, "MetadataIndex");
    const auto& name = as<std::string>(attribute(index, "fqn"), "a name");
    const auto* offset = index.find("offset");
    const bool is_part = offset != nullptr && !std::holds_alternative<std::nullptr_t>(offset->content);
    if (is_part) {
      places.parts.insert_or_assign({name, shape_of(*offset)}, place_of(storage));
    } else {
      places.objects.insert_or_assign(name, place_of(storage));
    }
  }
  return places;
}

DistributedTensor tensor_of(const std::string& key, const PickleValue& attributes, const Places& places) {
  DistributedTensor tensor{
      .spec = {.type = type_of(attribute(attributes, "properties")), .shape = shape_of(attribute(attributes, "size"))}};
  product_of(tensor.spec.shape);
  for (const auto& item : as<PickleValue::List>(attribute(attributes, "chunks"), "a list")) {
    const auto& chunk = attributes_of(item, "ChunkStorageMetadata");
    DistributedPart part{.offsets = shape_of(attribute(chunk, "offsets")),
                         .sizes = shape_of(attribute(chunk, "sizes"))};
    require_within(key, tensor.spec, part);
    if (part.elements() == 0) continue;  // of a rank without rows
    const auto place = places.parts.find({key, part.offsets});
    if (place == places.parts.end()) fail(text::concat("does not say where a part of ", text::quote(key), " is"));
    part.place = place->second;
    if (tensor.parts.size() == max_parts)
      fail(text::concat("cuts ", text::quote(key), " into more than ", max_parts, " parts"));
    tensor.parts.push_back(std::move(part));
  }
  std::ranges::sort(tensor.parts, {}, &DistributedPart::offsets);
  require_filled(key, tensor);
  return tensor;
}

/// The paths of keys, in which the writer has joined the names of nested dicts by points.
std::map<std::string, DistributedPath> paths_in(const PickleValue& metadata) {
  std::map<std::string, DistributedPath> paths;
  const auto* data = metadata.find("planner_data");
  const auto* known = data != nullptr ? std::get_if<PickleValue::Dict>(&data->content) : nullptr;
  if (known == nullptr) return paths;
  for (const auto& [key, value] : *known) {
    auto& path = paths[as<std::string>(key, "a name")];
    for (const auto& item : as<PickleValue::Tuple>(value, "a path").items) {
      const auto* number = std::get_if<std::int64_t>(&item.content);
      path.push_back(number != nullptr ? std::to_string(*number) : as<std::string>(item, "a name"));
    }
  }
  return paths;
}

/// Removes the name of the one dict that holds all values.
void begin_in_the_dict(DistributedMetadata& metadata) {
  std::set<std::string> dicts;
  bool is_nested = true;
  const auto each = [&](const auto& apply) {
    for (auto& tensor : metadata.tensors) apply(tensor.path);
    for (auto& object : metadata.objects) apply(object.path);
  };
  each([&](const DistributedPath& path) {
    is_nested = is_nested && path.size() > 1;
    if (!path.empty()) dicts.insert(path.front());
  });
  if (is_nested && dicts.size() == 1) each([](DistributedPath& path) { path.erase(path.begin()); });
}

}  // namespace

std::int64_t DistributedPart::elements() const { return product_of(sizes); }

DistributedMetadata parse_distributed_metadata(std::string_view pickle) {
  const auto value = parse_pickle(
      pickle, [](const std::string&) { return std::nullopt; }, ForeignObjects::kept);
  const auto& attributes = attributes_of(value, "Metadata");
  const auto places = places_in(attributes);
  const auto paths = paths_in(attributes);
  DistributedMetadata metadata;
  for (const auto& [key, item] : as<PickleValue::Dict>(attribute(attributes, "state_dict_metadata"), "a dict")) {
    const auto& name = as<std::string>(key, "a name");
    const auto known = paths.find(name);
    auto path = known != paths.end() ? known->second : DistributedPath{name};
    const auto* object = std::get_if<PickleValue::Foreign>(&item.content);
    if (object != nullptr && object->name.ends_with("TensorStorageMetadata")) {
      auto tensor = tensor_of(name, attributes_of(item, "TensorStorageMetadata"), places);
      tensor.path = std::move(path);
      metadata.tensors.push_back(std::move(tensor));
    } else if (const auto place = places.objects.find(name); place != places.objects.end()) {
      metadata.objects.push_back({.path = std::move(path), .place = place->second});
    }
  }
  begin_in_the_dict(metadata);
  return metadata;
}

}  // namespace hortator::formats
