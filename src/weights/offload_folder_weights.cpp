#include "weights/offload_folder_weights.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t max_offload_index_bytes = std::uint64_t{1} << 28;

[[noreturn]] void refuse_index(const fs::path& folder, const std::string& problem) {
  throw formats::FileError({.what = text::concat(folder / OffloadFolderWeights::index_file,
                                                 " is not a valid index of offloaded weights: ", problem),
                            .hint = "write the folder again with accelerate's offload_state_dict or disk_offload"});
}

json read_offload_index(const fs::path& folder) {
  const auto index =
      json::parse(formats::read_text(folder / OffloadFolderWeights::index_file, max_offload_index_bytes), nullptr,
                  /*allow_exceptions=*/false);
  if (!index.is_object()) refuse_index(folder, "it is not an object of names");
  return index;
}

std::string text_at(const json& entry, const char* key, const std::string& otherwise) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

formats::TensorSpec spec_in(const fs::path& folder, const std::string& name, const json& entry) {
  const auto type = formats::type_named(text_at(entry, "dtype", ""));
  if (!type) refuse_index(folder, text::concat(text::quote(name), " has no known dtype"));
  formats::TensorSpec spec{.type = *type};
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array()) refuse_index(folder, text::quote(name) + " has no shape");
  constexpr std::int64_t max_elements = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const auto& size : *shape) {
    const auto number = size.is_number_integer() ? size.get<std::int64_t>() : -1;
    if (number < 0 || number > max_elements / std::max<std::int64_t>(elements, 1))
      refuse_index(folder, text::quote(name) + " has an invalid shape");
    spec.shape.push_back(number);
    elements *= number;
  }
  return spec;
}

}  // namespace

// Names are parts of paths: one in a downloaded index must not lead out of the folder.
OffloadFolderWeights::OffloadFolderWeights(fs::path folder) : folder_(std::move(folder)) {
  const auto index = read_offload_index(folder_);
  for (const auto& [name, entry] : index.items()) {
    if (name.empty() || name.find('/') != std::string::npos || !entry.is_object())
      refuse_index(folder_, text::quote(name) + " is not the name of a tensor with its type and shape");
    const auto file = text_at(entry, "safetensors_file", "");
    entries_.emplace(name, file.empty() ? in_own_file(name, spec_in(folder_, name, entry))
                                        : in_safetensors(file, text_at(entry, "weight_name", name)));
    names_.push_back(name);
  }
}

// As Python opens it: a relative path begins in the working directory. Folders that were moved as a whole keep their
// files beside the index.
OffloadFolderWeights::Entry OffloadFolderWeights::in_safetensors(const std::string& file, const std::string& name) {
  auto& source = sources_[file];
  if (!source) {
    const auto beside = folder_ / fs::path(file).filename();
    source = std::make_unique<formats::SafetensorsSource>(fs::exists(beside) ? beside : fs::path(file));
  }
  return {.spec = source->spec(name), .source = source.get(), .name_there = name};
}

OffloadFolderWeights::Entry OffloadFolderWeights::in_own_file(const std::string& name,
                                                              const formats::TensorSpec& spec) const {
  const formats::FixedFile file(file_of(name));
  const auto bytes = file.bytes();
  if (bytes != static_cast<std::uint64_t>(spec.bytes())) {
    throw formats::FileError({.what = text::concat(file_of(name), " has ", bytes, " bytes, ", formats::to_string(spec),
                                                   " has ", spec.bytes()),
                              .why = "the index says that it holds this tensor",
                              .hint = "the file is truncated or of another offload: write the folder again"});
  }
  return {.spec = spec, .found = file.found()};
}

const OffloadFolderWeights::Entry& OffloadFolderWeights::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw UsageError(
      {.what = text::concat(folder_, " has no tensor ", text::quote(name)), .hint = text::suggestion(name, names_)});
}

formats::TensorSpec OffloadFolderWeights::spec(const std::string& name) const { return entry(name).spec; }

void OffloadFolderWeights::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto& [spec, source, name_there, found] = entry(name);
  const auto offset = static_cast<std::uint64_t>(elements.begin * spec.element_bytes());
  const auto bytes = static_cast<std::size_t>(elements.size() * spec.element_bytes());
  if (source != nullptr) return source->file().read_at(source->offset(name_there) + offset, to, bytes);
  formats::FixedFile(file_of(name), found).read_at(offset, to, bytes);
}

void OffloadFolderWeights::require_unchanged() const {
  for (const auto& [file, source] : sources_) source->file().require_unchanged();
  for (const auto& [name, entry] : entries_) {
    if (entry.source == nullptr) static_cast<void>(formats::FixedFile(file_of(name), entry.found));
  }
}

}  // namespace hortator::weights
