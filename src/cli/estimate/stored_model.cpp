#include "cli/estimate/stored_model.hpp"

#include <algorithm>
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "checkpoint/format.hpp"
#include "checkpoint/manifest.hpp"
#include "io/hdf5_dataset.hpp"
#include "io/hdf5_file.hpp"
#include "io/hdf5_group.hpp"
#include "io/safetensors_source.hpp"

namespace hortator::cli::estimates {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<std::pair<std::string, io::TensorSpec>>;

constexpr std::string_view index_suffix = ".index.json";

[[noreturn]] void refuse(const fs::path& path) {
  throw UsageError({.what = text::concat("there is no model in ", text::quote(path.string())),
                    .hint = "name a file of safetensors, its index, a folder with one of them, or a checkpoint"});
}

void add_safetensors(const fs::path& path, Tensors& tensors) {
  const io::SafetensorsSource source(path);
  for (const auto& name : source.names()) tensors.emplace_back(name, source.spec(name));
}

Tensors of_index(const fs::path& path) {
  std::set<std::string> files;
  try {
    const auto index = nlohmann::json::parse(std::ifstream(path));
    for (const auto& [name, file] : index.at("weight_map").items()) files.insert(file.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw Error({.what = text::concat(path.string(), " is no index of a model's files"), .why = error.what()});
  }
  Tensors tensors;
  for (const auto& file : files) add_safetensors(path.parent_path() / file, tensors);
  return tensors;
}

// Of several models in a checkpoint, or the only one; optimizers and the rest stay out.
Tensors models_among(const Tensors& entries) {
  constexpr std::string_view folder = "models/";
  Tensors models;
  std::set<std::string> numbers;
  for (const auto& [entry, spec] : entries) {
    if (!entry.starts_with(folder)) continue;
    const auto slash = entry.find('/', folder.size());
    if (slash == std::string::npos) continue;
    auto name = entry.substr(folder.size());
    numbers.insert(entry.substr(folder.size(), slash - folder.size()));
    name[slash - folder.size()] = '.';
    models.emplace_back(std::move(name), spec);
  }
  if (models.empty()) return entries;
  if (numbers.size() == 1) {
    for (auto& [name, spec] : models) name.erase(0, numbers.begin()->size() + 1);
  }
  return models;
}

Tensors of_checkpoint(const fs::path& folder) {
  Tensors entries;
  for (const auto& [name, dataset] : checkpoint::read_manifest(folder).datasets)
    entries.emplace_back(name, dataset.spec);
  return models_among(entries);
}

void add_group(const io::Group& group, const std::string& path, std::uint64_t file_bytes, Tensors& tensors) {
  for (const auto& child : io::children(group)) {
    const auto name = path + child;
    const auto object = io::open_object(group, child);
    if (const auto* below = std::get_if<io::Group>(&object)) {
      add_group(*below, name + "/", file_bytes, tensors);
    } else {
      tensors.emplace_back(name, io::inspect_dataset(std::get<io::Dataset>(object), name, file_bytes).spec);
    }
  }
}

Tensors of_hdf5(const fs::path& path) {
  const auto file = io::open_file(path);
  Tensors entries;
  add_group(io::root_group(file), "", fs::file_size(path), entries);
  auto models = models_among(entries);
  for (auto& [name, spec] : models) std::replace(name.begin(), name.end(), '/', '.');
  return models;
}

std::vector<fs::path> files_with(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(suffix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Tensors of_folder(const fs::path& folder) {
  if (fs::exists(folder / checkpoint::manifest_file)) return of_checkpoint(folder);
  const auto indices = files_with(folder, ".safetensors.index.json");
  if (indices.size() == 1) return of_index(indices.front());
  Tensors tensors;
  for (const auto& file : files_with(folder, ".safetensors")) add_safetensors(file, tensors);
  if (tensors.empty()) refuse(folder);
  return tensors;
}

}  // namespace

Tensors stored_model(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return of_folder(path);
  if (!fs::is_regular_file(path, error)) refuse(path);
  const auto name = path.filename().string();
  if (name.ends_with(index_suffix)) return of_index(path);
  if (name.ends_with(".h5") || name.ends_with(".hdf5")) return of_hdf5(path);
  Tensors tensors;
  add_safetensors(path, tensors);
  return tensors;
}

}  // namespace hortator::cli::estimates
