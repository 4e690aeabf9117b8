#include "formats/safetensors/source.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {
namespace {

SafetensorsHeader read_header(const FixedFile& file) {
  std::array<std::byte, 8> length{};
  const auto present = std::min<std::uint64_t>(length.size(), file.bytes());
  file.read_at(0, length.data(), present);
  std::string text(safetensors_header_bytes({length.data(), present}, file.bytes()), '\0');
  file.read_at(length.size(), text.data(), text.size());
  file.require_unchanged();
  return parse_safetensors_header(text, file.bytes());
}

SafetensorsHeader checked_header(const FixedFile& file) {
  try {
    return read_header(file);
  } catch (const SafetensorsFault& fault) {
    throw FileError({.what = text::concat(file.path(), " is not a valid safetensors file: ", fault.what()),
                     .hint = "it is truncated, damaged, or of another format: write or copy it again"});
  }
}

}  // namespace

SafetensorsSource::SafetensorsSource(const std::filesystem::path& path) : file_(path), header_(checked_header(file_)) {
  for (const auto& entry : header_.entries) {
    indices_[entry.name] = names_.size();
    names_.push_back(entry.name);
  }
}

const SafetensorsEntry& SafetensorsSource::entry(const std::string& name) const {
  const auto found = indices_.find(name);
  if (found != indices_.end()) return header_.entries[found->second];
  throw UsageError({.what = text::concat(file_.path(), " has no tensor ", text::quote(name)),
                    .hint = text::suggestion(name, names_)});
}

TensorSpec SafetensorsSource::spec(const std::string& name) const {
  const auto& stored = entry(name);
  TensorSpec spec{.type = stored.type->type, .shape = {stored.shape.begin(), stored.shape.end()}};
  if (spec.type == at::ScalarType::Undefined) {
    throw FileError(
        {.what = text::concat("The tensor ", text::quote(name), " of ", file_.path(), " has elements of type ",
                              stored.type->name, ", which LibTorch does not have"),
         .hint = "convert it with the program that wrote it"});
  }
  if (stored.type->bits >= 8 || spec.shape.empty()) return spec;
  // An element of the tensor holds two of four bits.
  if (spec.shape.back() % 2 != 0) {
    throw FileError(
        {.what = text::concat("The tensor ", text::quote(name), " of ", file_.path(), " is ", stored.type->name, " [",
                              text::join(spec.shape), "]: its last dimension must be even"),
         .why = "a tensor holds such elements in pairs"});
  }
  spec.shape.back() /= 2;
  return spec;
}

StoredRows SafetensorsSource::rows(const std::string& name) const {
  auto row = spec(name);
  if (row.shape.empty()) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(name), " of ", file_.path(), " has no rows"),
                      .why = "it is a scalar"});
  }
  const auto rows = row.shape.front();
  row.shape.erase(row.shape.begin());
  return {.row = std::move(row), .rows = rows, .offset = offset(name)};
}

at::Tensor SafetensorsSource::get(const std::string& name) const {
  const auto stored_spec = spec(name);
  auto tensor = at::empty(stored_spec.shape, stored_spec.type);
  file_.read_at(offset(name), tensor.mutable_data_ptr(), tensor.nbytes());
  file_.require_unchanged();
  return tensor;
}

at::Tensor SafetensorsSource::view(const std::string& name) const {
  const auto stored_spec = spec(name);
  const auto begin = offset(name);
  if (stored_spec.elements() == 0 || begin % c10::elementSize(stored_spec.type) != 0) return get(name);
  auto mapped = map();
  return at::from_blob(
      mapped->data() + begin, stored_spec.shape, [mapped](void*) {}, at::TensorOptions(stored_spec.type));
}

std::shared_ptr<const FileMap> SafetensorsSource::map() const {
  const std::lock_guard lock(mapping_);
  if (map_ == nullptr) map_ = std::make_shared<const FileMap>(file_);
  return map_;
}

}  // namespace hortator::formats

namespace hortator {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : source_(std::make_shared<const formats::SafetensorsSource>(path)) {}

const std::filesystem::path& SafetensorsFile::path() const { return source_->file().path(); }
const std::vector<std::string>& SafetensorsFile::names() const { return source_->names(); }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return source_->header().metadata; }
bool SafetensorsFile::contains(const std::string& name) const { return source_->contains(name); }

SafetensorsInfo SafetensorsFile::info(const std::string& name) const {
  const auto& entry = source_->entry(name);
  return {.dtype = std::string(entry.type->name), .shape = {entry.shape.begin(), entry.shape.end()}};
}

at::Tensor SafetensorsFile::get(const std::string& name) const { return source_->get(name); }
at::Tensor SafetensorsFile::view(const std::string& name) const { return source_->view(name); }

at::Tensor SafetensorsFile::get_rows(const std::string& name, std::int64_t first, std::int64_t count) const {
  const auto stored = source_->rows(name);
  if (first < 0 || count < 0 || first > stored.rows - count) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(name), " of ", path(), " has no ", count,
                                           " rows from row ", first, ": it has ", stored.rows)});
  }
  auto tensor = formats::empty_rows(stored.row, static_cast<std::size_t>(count));
  const auto row_bytes = static_cast<std::uint64_t>(stored.row.bytes());
  source_->file().read_at(stored.offset + static_cast<std::uint64_t>(first) * row_bytes, tensor.mutable_data_ptr(),
                          tensor.nbytes());
  source_->file().require_unchanged();
  return tensor;
}

}  // namespace hortator
