#include "formats/safetensors/source.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {
namespace {

SafetensorsHeader read_header(const FixedFile& file) {
  std::array<std::byte, 8> length{};
  const auto begun = std::min<std::uint64_t>(length.size(), file.bytes());
  file.read_at(0, length.data(), begun);
  std::string text(safetensors_header_bytes({length.data(), begun}, file.bytes()), '\0');
  file.read_at(length.size(), text.data(), text.size());
  file.require_unchanged();
  return parse_safetensors_header(text, file.bytes());
}

SafetensorsHeader checked_header(const FixedFile& file) {
  try {
    return read_header(file);
  } catch (const SafetensorsFault& fault) {
    throw FileError({.what = text::concat(file.path(), " is no file of safetensors: ", fault.what()),
                     .hint = "it was cut short, changed, or is of another kind: write or copy it again"});
  }
}

}  // namespace

SafetensorsSource::SafetensorsSource(const std::filesystem::path& path) : file_(path), header_(checked_header(file_)) {
  for (const auto& entry : header_.entries) {
    places_[entry.name] = names_.size();
    names_.push_back(entry.name);
  }
}

const SafetensorsEntry& SafetensorsSource::entry(const std::string& name) const {
  const auto found = places_.find(name);
  if (found != places_.end()) return header_.entries[found->second];
  throw UsageError({.what = text::concat(file_.path(), " has no tensor ", text::quote(name)),
                    .hint = text::suggestion(name, names_)});
}

TensorSpec SafetensorsSource::spec(const std::string& name) const {
  const auto& stored = entry(name);
  TensorSpec spec{.type = stored.type->type, .shape = {stored.shape.begin(), stored.shape.end()}};
  if (spec.type == at::ScalarType::Undefined) {
    throw FileError({.what = text::concat("the tensor ", text::quote(name), " of ", file_.path(), " has elements of ",
                                          stored.type->name, ", which no tensor has"),
                     .hint = "convert it where it was made"});
  }
  if (stored.type->bits >= 8 || spec.shape.empty()) return spec;
  // Two elements of four bits are one of a tensor's.
  if (spec.shape.back() % 2 != 0) {
    throw FileError(
        {.what = text::concat("the tensor ", text::quote(name), " of ", file_.path(), " is ", stored.type->name, " [",
                              text::join(spec.shape), "]: its last dimension must be even"),
         .why = "a tensor holds such elements in pairs"});
  }
  spec.shape.back() /= 2;
  return spec;
}

StoredRows SafetensorsSource::rows(const std::string& name) const {
  auto row = spec(name);
  if (row.shape.empty()) {
    throw UsageError({.what = text::concat("the tensor ", text::quote(name), " of ", file_.path(), " has no rows"),
                      .why = "it is one number"});
  }
  const auto rows = row.shape.front();
  row.shape.erase(row.shape.begin());
  return {.row = std::move(row), .rows = rows, .offset = offset(name)};
}

at::Tensor SafetensorsSource::get(const std::string& name) const {
  const auto kind = spec(name);
  auto tensor = at::empty(kind.shape, kind.type);
  file_.read_at(offset(name), tensor.mutable_data_ptr(), tensor.nbytes());
  file_.require_unchanged();
  return tensor;
}

at::Tensor SafetensorsSource::view(const std::string& name) const {
  const auto kind = spec(name);
  const auto place = offset(name);
  if (kind.elements() == 0 || place % c10::elementSize(kind.type) != 0) return get(name);
  auto mapped = map();
  return at::from_blob(
      mapped->data() + place, kind.shape, [mapped](void*) {}, at::TensorOptions(kind.type));
}

std::shared_ptr<const FileMap> SafetensorsSource::map() const {
  const std::lock_guard lock(mapping_);
  if (map_ == nullptr) map_ = std::make_shared<const FileMap>(file_);
  return map_;
}

}  // namespace hortator::formats
