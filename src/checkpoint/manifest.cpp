#include "checkpoint/manifest.hpp"

#include <nlohmann/json.hpp>

#include "checkpoint/manifest_value.hpp"
#include "core/checksum/crc32c.hpp"
#include "core/text/foreign_text.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::checkpoint {
namespace {

using nlohmann::json;

constexpr int max_levels = 16;
constexpr std::string_view checksum_key = ",\n\"crc32c\": ";

[[noreturn]] void refuse(const std::string& problem) { throw formats::FileError({.what = problem}); }

std::string quoted(const std::string& name) { return json(name).dump(); }

std::string end_line(std::string_view text) {
  return text::concat(checksum_key, core::crc32c(text.data(), text.size()), "}\n");
}

/// What stands before the checksum, which is right.
std::string_view checked(std::string_view text) {
  const auto end = text.rfind(checksum_key);
  if (end == std::string_view::npos) refuse("it has no checksum, so it is cut off or no manifest of a checkpoint");
  const auto body = text.substr(0, end);
  if (end_line(body) != text.substr(end)) refuse("its checksum is wrong, so it is damaged");
  return body;
}

std::string line_of(const std::string& name, const Manifest::Dataset& dataset) {
  std::vector<std::string> pieces;
  for (const auto& piece : dataset.pieces)
    pieces.push_back(
        text::concat('[', piece.file, ", ", piece.offset, ", ", piece.elements.begin, ", ", piece.elements.end, ']'));
  return text::concat(quoted(name), ": {\"type\": \"", formats::type_name(dataset.spec.type), "\", \"shape\": [",
                      text::join(dataset.spec.shape), "], \"pieces\": [", text::join(pieces), "], \"crc32c\": [",
                      text::join(dataset.blocks), "]}");
}

// --- reading: everything may be anything
// -----------------------------------------------------------------------------------------

std::int64_t size_in(const json& from, const char* name) {
  const auto value = from.at(name).get<std::int64_t>();
  if (value < 0) refuse(text::concat(text::quote(name), " is negative"));
  return value;
}

std::vector<Manifest::File> files_in(const json& list) {
  std::vector<Manifest::File> files;
  for (const auto& one : list) {
    files.push_back({.name = one.at("name").get<std::string>(),
                     .bytes = size_in(one, "bytes"),
                     .structure = one.at("structure_crc32c").get<std::uint32_t>()});
    if (is_data_file(files.back().name)) continue;
    throw formats::FileError(
        {.what = "it names the file " + text::quote(files.back().name),
         .why = "the files of a checkpoint lie in its folder and are called state.h5 or state-0.h5"});
  }
  return files;
}

formats::TensorSpec spec_in(const json& from) {
  const auto name = from.at("type").get<std::string>();
  const auto type = formats::type_named(name);
  if (!type) refuse("it names the type " + text::quote(name));
  return {.type = *type, .shape = from.at("shape").get<std::vector<std::int64_t>>()};
}

/// Numbers of bytes that do not fit into 63 bits are not believed.
std::int64_t bytes_of(const formats::TensorSpec& spec) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(spec.type));
  for (const auto size : spec.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) refuse("its shape cannot be");
  }
  return bytes;
}

std::vector<Piece> pieces_in(const json& list) {
  std::vector<Piece> pieces;
  for (const auto& one : list) {
    pieces.push_back({.file = one.at(0).get<std::size_t>(),
                      .elements = {one.at(2).get<std::int64_t>(), one.at(3).get<std::int64_t>()},
                      .offset = one.at(1).get<std::int64_t>()});
  }
  return pieces;
}

void require_places(const Manifest::Dataset& dataset, const std::vector<Manifest::File>& files) {
  const auto bytes = bytes_of(dataset.spec);
  const auto element = static_cast<std::int64_t>(c10::elementSize(dataset.spec.type));
  std::int64_t end = 0;
  for (const auto& piece : dataset.pieces) {
    if (piece.elements.begin != end || piece.elements.end <= end || piece.elements.end > bytes / element)
      refuse("its parts do not join");
    end = piece.elements.end;
    if (piece.file >= files.size() || piece.offset < 0 || piece.offset > files[piece.file].bytes ||
        piece.elements.size() * element > files[piece.file].bytes - piece.offset)
      refuse("it reaches beyond its file");
  }
  if (end != bytes / element) refuse("a part of it is missing");
  if (static_cast<std::int64_t>(dataset.blocks.size()) != (bytes + block_bytes - 1) / block_bytes)
    refuse("it has another number of checksums than of blocks");
}

Manifest::Dataset dataset_in(const std::string& name, const json& from, const std::vector<Manifest::File>& files) {
  try {
    Manifest::Dataset dataset = {.spec = spec_in(from),
                                 .pieces = pieces_in(from.at("pieces")),
                                 .blocks = from.at("crc32c").get<std::vector<std::uint32_t>>()};
    require_places(dataset, files);
    return dataset;
  } catch (const std::exception& error) {
    refuse(text::concat("of the dataset ", text::quote(name), ": ", error.what()));
  }
}

Manifest parse(std::string_view text) {
  const auto body = checked(text);
  if (!core::is_shallow(body, max_levels)) refuse(text::concat("it is more than ", max_levels, " levels deep"));
  const auto all = json::parse(text.begin(), text.end());
  const auto version = all.at("format").get<std::int64_t>();
  if (version != format_version) {
    throw formats::FileError({.what = text::concat("it has format ", version),
                              .why = text::concat("this Hortator reads format ", format_version),
                              .hint = "use the version of Hortator that wrote it"});
  }
  if (all.at("block_bytes").get<std::int64_t>() != block_bytes) refuse("its blocks have another size");
  Manifest manifest = {.step = all.at("step").get<std::int64_t>(),
                       .updates = all.value("updates", std::int64_t{0}),
                       .world_size = size_in(all, "world_size"),
                       .mesh = all.at("mesh").get<std::map<std::string, std::int64_t>>(),
                       .metadata = all.value("metadata", std::map<std::string, std::string>()),
                       .created = all.at("created").get<std::string>(),
                       .files = files_in(all.at("files"))};
  for (const auto& [name, dataset] : all.at("datasets").items())
    manifest.datasets.emplace(name, dataset_in(name, dataset, manifest.files));
  for (const auto& [name, value] : all.at("values").items()) put_value(manifest.values, name, value);
  return manifest;
}

/// Errors of the work say whose manifest it is.
template <typename Work>
auto naming(const std::filesystem::path& folder, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw formats::FileError({.what = text::concat("the checkpoint ", (folder / manifest_file).string(),
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
  std::vector<std::string> files;
  for (const auto& file : manifest.files)
    files.push_back(text::concat("{\"name\": ", quoted(file.name), ", \"bytes\": ", file.bytes,
                                 ", \"structure_crc32c\": ", file.structure, '}'));
  std::vector<std::string> values;
  for (const auto& [name, value] : manifest.values.values())
    values.push_back(quoted(name) + ": " + json_of(value).dump());
  std::vector<std::string> datasets;
  for (const auto& [name, dataset] : manifest.datasets) datasets.push_back(line_of(name, dataset));
  auto words = text::concat(
      "{\"format\": ", format_version, ",\n\"step\": ", manifest.step, ",\n\"updates\": ", manifest.updates,
      ",\n\"world_size\": ", manifest.world_size, ",\n\"mesh\": ", json(manifest.mesh).dump(),
      ",\n\"metadata\": ", json(manifest.metadata).dump(), ",\n\"created\": ", quoted(manifest.created),
      ",\n\"block_bytes\": ", block_bytes, ",\n\"files\": [\n", text::join(files, ",\n"), "],\n\"values\": {\n",
      text::join(values, ",\n"), "},\n\"datasets\": {\n", text::join(datasets, ",\n"), "}");
  return words + end_line(words);
}

Manifest parse_manifest(std::string_view text) {
  try {
    return parse(text);
  } catch (const nlohmann::json::exception& error) {
    refuse(text::concat("it does not say what a manifest says: ", error.what()));
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
