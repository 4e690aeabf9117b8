#include <ATen/ops/empty.h>

#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/safetensors/source.hpp"

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
  auto shape = stored.row.shape;
  shape.insert(shape.begin(), count);
  auto tensor = at::empty(shape, stored.row.type);
  const auto row_bytes = static_cast<std::uint64_t>(stored.row.bytes());
  source_->file().read_at(stored.offset + static_cast<std::uint64_t>(first) * row_bytes, tensor.mutable_data_ptr(),
                          tensor.nbytes());
  source_->file().require_unchanged();
  return tensor;
}

}  // namespace hortator
