#include "tools/estimate/stored_model.hpp"

#include <algorithm>
#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <set>

#include "checkpoint/format.hpp"
#include "checkpoint/manifest.hpp"
#include "core/text/text.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/file.hpp"
#include "tools/estimate/hub_cache.hpp"
#include "weights/weight_source.hpp"

namespace hortator::tools::estimates {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<std::pair<std::string, formats::TensorSpec>>;

[[noreturn]] void refuse(const fs::path& path) {
  throw UsageError({.what = text::concat("No model in ", text::quote(path.string())),
                    .hint = "give a file of safetensors or of torch.save, an index, a folder with one of them or with "
                            "a config.json, a checkpoint, a file of HDF5, or the name of a model that huggingface_hub "
                            "has downloaded"});
}

Tensors of_weights(const fs::path& path) {
  const auto source = weights::open_weights(path);
  Tensors tensors;
  std::set<std::string> known;  // tied weights count once, under the first name
  for (const auto& name : source->names()) {
    const auto identity = source->identity(name);
    if (identity.empty() || known.insert(identity).second) tensors.emplace_back(name, source->spec(name));
  }
  return tensors;
}

// The tensors of the models in a checkpoint, without optimizers and other state.
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

// A model of Hugging Face that is made without memory, in float32 as transformers makes it. Tied weights count once.
Tensors of_config(const fs::path& path) {
  const auto model = init_empty_weights([&] { return models::from_config(path); });
  Tensors tensors;
  std::set<const void*> known;
  const auto add = [&](const auto& named) {
    for (const auto& [name, tensor] : named) {
      if (tensor.defined() && known.insert(tensor.unsafeGetTensorImpl()).second)
        tensors.emplace_back(name, formats::spec_of(tensor));
    }
  };
  add(model->named_parameters().pairs());
  add(model->named_buffers().pairs());
  return tensors;
}

void add_group(const formats::Group& group, const std::string& path, std::uint64_t file_bytes, Tensors& tensors) {
  for (const auto& child : formats::children(group)) {
    const auto name = path + child;
    const auto object = formats::open_object(group, child);
    if (const auto* below = std::get_if<formats::Group>(&object)) {
      add_group(*below, name + "/", file_bytes, tensors);
    } else {
      tensors.emplace_back(name, formats::inspect_dataset(std::get<formats::Dataset>(object), name, file_bytes).spec);
    }
  }
}

Tensors of_hdf5(const fs::path& path) {
  const auto file = formats::open_file(path);
  Tensors entries;
  add_group(formats::root_group(file), "", fs::file_size(path), entries);
  auto models = models_among(entries);
  for (auto& [name, spec] : models) std::ranges::replace(name, '/', '.');
  return models;
}

}  // namespace

Tensors stored_model(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (fs::exists(path / checkpoint::manifest_file)) return of_checkpoint(path);
    if (weights::holds_weights(path)) return of_weights(path);
    if (!fs::exists(path / "config.json")) refuse(path);
    return of_config(path / "config.json");
  }
  if (!fs::is_regular_file(path, error)) {
    const auto snapshot = hub_snapshot(path.string(), hub_folder(core::process_variables()));
    if (!snapshot) refuse(path);
    return stored_model(*snapshot);
  }
  if (path.filename() == "config.json") return of_config(path);
  const auto extension = path.extension();
  return extension == ".h5" || extension == ".hdf5" ? of_hdf5(path) : of_weights(path);
}

}  // namespace hortator::tools::estimates
