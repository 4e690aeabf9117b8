#include "checkpoint/manifest.hpp"

#include <nlohmann/json.hpp>

#include "checkpoint/format.hpp"
#include "checkpoint/json_value.hpp"
#include "core/checksum/crc.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::checkpoint {
using nlohmann::json;

namespace {

[[noreturn]] void refuse(const std::string& problem) { throw formats::FileError({.what = problem}); }

}  // namespace

// nlohmann finds these by the types' namespace.

static void to_json(json& to, const Manifest::File& file) {
  to = {{"name", file.name}, {"bytes", file.bytes}, {"structure_crc32c", file.structure_crc32c}};
  if (file.tensors_crc32c) to["tensors_crc32c"] = *file.tensors_crc32c;
}

static void from_json(const json& from, Manifest::File& file) {
  from.at("name").get_to(file.name);
  from.at("bytes").get_to(file.bytes);
  from.at("structure_crc32c").get_to(file.structure_crc32c);
  if (from.contains("tensors_crc32c")) file.tensors_crc32c = from.at("tensors_crc32c").get<std::uint32_t>();
}

static void to_json(json& to, const StoredPiece& piece) {
  to = {piece.file, piece.offset, piece.elements.begin, piece.elements.end};
}

static void from_json(const json& from, StoredPiece& piece) {
  from.at(0).get_to(piece.file);
  from.at(1).get_to(piece.offset);
  from.at(2).get_to(piece.elements.begin);
  from.at(3).get_to(piece.elements.end);
}

static void to_json(json& to, const Manifest::Dataset& dataset) {
  to = {{"type", formats::type_name(dataset.spec.type)},
        {"shape", dataset.spec.shape},
        {"pieces", dataset.pieces},
        {"crc32c", dataset.blocks}};
}

static void from_json(const json& from, Manifest::Dataset& dataset) {
  const auto name = from.at("type").get<std::string>();
  const auto type = formats::type_named(name);
  if (!type) refuse("it has the unknown type " + text::quote(name));
  dataset.spec.type = *type;
  from.at("shape").get_to(dataset.spec.shape);
  from.at("pieces").get_to(dataset.pieces);
  from.at("crc32c").get_to(dataset.blocks);
}

namespace {

constexpr int max_levels = 16;
constexpr std::string_view checksum_key = ",\n\"crc32c\": ";

std::string end_line(std::string_view text) {
  return text::concat(checksum_key, core::crc32c(text.data(), text.size()), "}\n");
}

/// Returns what precedes the checksum; throws unless the checksum is right.
std::string_view checked(std::string_view text) {
  const auto end = text.rfind(checksum_key);
  if (end == std::string_view::npos) refuse("it has no checksum, so it is cut off or not a manifest of a checkpoint");
  const auto body = text.substr(0, end);
  if (end_line(body) != text.substr(end)) refuse("its checksum is wrong, so it is damaged");
  return body;
}

/// All fields of a manifest with their keys, for writing and for reading. "format" and "block_bytes" are constants.
template <typename M, typename Visit>
void visit_fields(M& manifest, const Visit& visit) {
  visit("step", manifest.step);
  visit("updates", manifest.updates);
  visit("world_size", manifest.world_size);
  visit("mesh", manifest.mesh);
  visit("metadata", manifest.metadata);
  visit("created", manifest.created);
  visit("files", manifest.files);
  visit("values", manifest.values);
  visit("datasets", manifest.datasets);
}

/// Manifests of older versions do not have these keys.
bool is_optional(std::string_view key) { return key == "updates" || key == "metadata"; }

/// One entry a line, as text of JSON.
template <typename Range, typename ToText>
std::string lines_of(char begin, const Range& entries, char end, const ToText& to_text) {
  std::vector<std::string> lines;
  for (const auto& entry : entries) lines.push_back(to_text(entry));
  return text::concat(begin, '\n', text::join(lines, ",\n"), end);
}

std::string member(std::string_view key, const std::string& value) {
  return text::concat(json(key).dump(), ": ", value);
}

template <typename T>
std::string text_of(const T& value) {
  return json(value).dump();
}

std::string text_of(const std::vector<Manifest::File>& files) {
  return lines_of('[', files, ']', [](const Manifest::File& file) { return json(file).dump(); });
}

std::string text_of(const StateDict& values) {
  return lines_of('{', values.values(), '}',
                  [](const auto& entry) { return member(entry.first, json_of(entry.second).dump()); });
}

std::string text_of(const std::map<std::string, Manifest::Dataset>& datasets) {
  return lines_of('{', datasets, '}', [](const auto& entry) { return member(entry.first, json(entry.second).dump()); });
}

/// Throws if the number of bytes does not fit into 63 bits.
std::int64_t bytes_of(const formats::TensorSpec& spec) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(spec.type));
  for (const auto size : spec.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) refuse("its shape is not valid");
  }
  return bytes;
}

void check(const std::vector<Manifest::File>& files) {
  for (const auto& file : files) {
    if (file.bytes < 0) refuse("'bytes' is negative");
    if (is_data_file(file.name)) continue;
    throw formats::FileError(
        {.what = "it names the file " + text::quote(file.name),
         .why = "the files of a checkpoint are in its folder and are called state.h5, state-0.h5 or frozen.h5"});
  }
}

void check(const Manifest::Dataset& dataset, const std::vector<Manifest::File>& files) {
  const auto bytes = bytes_of(dataset.spec);
  const auto element = static_cast<std::int64_t>(c10::elementSize(dataset.spec.type));
  std::int64_t end = 0;
  for (const auto& piece : dataset.pieces) {
    if (piece.elements.begin != end || piece.elements.end <= end || piece.elements.end > bytes / element)
      refuse("its pieces do not join");
    end = piece.elements.end;
    if (piece.file >= files.size() || piece.offset < 0 || piece.offset > files[piece.file].bytes ||
        piece.elements.size() * element > files[piece.file].bytes - piece.offset)
      refuse("it reaches beyond its file");
  }
  if (end != bytes / element) refuse("a piece of it is missing");
  if (static_cast<std::int64_t>(dataset.blocks.size()) != (bytes + block_bytes - 1) / block_bytes)
    refuse("its number of checksums differs from its number of blocks");
}

template <typename T>
void read_field(const json& from, T& field) {
  from.get_to(field);
}

void read_field(const json& from, StateDict& values) {
  for (const auto& [name, value] : from.items()) put_value(values, name, value);
}

void read_field(const json& from, std::map<std::string, Manifest::Dataset>& datasets) {
  for (const auto& [name, dataset] : from.items()) {
    try {
      datasets.emplace(name, dataset.get<Manifest::Dataset>());
    } catch (const std::exception& error) {
      refuse(text::concat("of the dataset ", text::quote(name), ": ", error.what()));
    }
  }
}

void check(const Manifest& manifest) {
  if (manifest.world_size < 0) refuse("'world_size' is negative");
  check(manifest.files);
  for (const auto& [name, dataset] : manifest.datasets) {
    try {
      check(dataset, manifest.files);
    } catch (const std::exception& error) {
      refuse(text::concat("of the dataset ", text::quote(name), ": ", error.what()));
    }
  }
}

/// Throws if a number is not whole: its conversion could overflow.
void check_whole(const json& node) {
  if (node.is_number_float()) refuse(text::concat("expected a whole number, got ", node.dump()));
  if (!node.is_structured()) return;
  for (const auto& child : node) check_whole(child);
}

Manifest parse(std::string_view text) {
  const auto body = checked(text);
  if (!core::is_shallow(body, max_levels)) refuse(text::concat("it is more than ", max_levels, " levels deep"));
  const auto all = json::parse(text.begin(), text.end());
  for (const auto& [key, value] : all.items()) {
    if (key != "values") check_whole(value);
  }
  const auto version = all.at("format").get<std::int64_t>();
  if (version != format_version) {
    throw formats::FileError({.what = text::concat("it has format ", version),
                              .why = text::concat("this Hortator reads format ", format_version),
                              .hint = "use the version of Hortator that wrote it"});
  }
  if (all.at("block_bytes").get<std::int64_t>() != block_bytes) refuse("its blocks have another size");
  Manifest manifest;
  visit_fields(manifest, [&](const char* key, auto& field) {
    if (all.contains(key) || !is_optional(key)) read_field(all.at(key), field);
  });
  check(manifest);
  return manifest;
}

/// Runs `work`; its errors name the manifest.
template <typename Work>
auto naming(const std::filesystem::path& folder, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw formats::FileError({.what = text::concat("The checkpoint ", (folder / manifest_file).string(),
                                                   " cannot be read: ", error.what())});
  }
}

}  // namespace

std::int64_t Manifest::tensor_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, dataset] : datasets) bytes += dataset.spec.bytes();
  return bytes;
}

std::string to_json(const Manifest& manifest) {
  std::vector<std::string> members = {member("format", text_of(format_version)),
                                      member("block_bytes", text_of(block_bytes))};
  visit_fields(manifest, [&](const char* key, const auto& field) { members.push_back(member(key, text_of(field))); });
  const auto text = "{" + text::join(members, ",\n");
  return text + end_line(text);
}

Manifest parse_manifest(std::string_view text) {
  try {
    return parse(text);
  } catch (const nlohmann::json::exception& error) {
    refuse(text::concat("it does not have the fields of a manifest: ", error.what()));
  }
}

std::string manifest_text(const std::filesystem::path& folder) {
  return naming(folder, [&] { return formats::read_text(folder / manifest_file, max_manifest_bytes); });
}

Manifest parse_manifest(const std::filesystem::path& folder, std::string_view json) {
  return naming(folder, [&] { return parse_manifest(json); });
}

Manifest read_manifest(const std::filesystem::path& folder) { return parse_manifest(folder, manifest_text(folder)); }

}  // namespace hortator::checkpoint
