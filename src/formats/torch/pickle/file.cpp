#include "formats/torch/pickle/file.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <map>
#include <mutex>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/fixed_file.hpp"
#include "formats/tensor/stored_rows.hpp"
#include "formats/torch/pickle/archive.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse_pickle(const FixedFile& file, std::string_view why, std::string hint) {
  throw FileError(
      {.what = text::concat(file.path(), " is not a valid PyTorch state dict: ", why), .hint = std::move(hint)});
}

/// Throws unless the file begins as a zip archive, with the format of files that are often mistaken for state dicts.
void require_zip(const FixedFile& file) {
  using namespace std::string_view_literals;
  constexpr auto zip = "PK\3\4"sv;
  constexpr auto legacy = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;  // the magic number, pickled
  constexpr std::uint64_t tar_magic_at = 257;
  constexpr auto resave = "rewrite it with today's PyTorch: torch.save(torch.load(name), name)";
  std::array<char, 512> buffer{};
  const auto bytes = std::min<std::uint64_t>(buffer.size(), file.bytes());
  file.read_at(0, buffer.data(), bytes);
  const std::string_view start(buffer.data(), bytes);
  if (start.starts_with(zip)) return;
  if (start.starts_with(legacy)) refuse_pickle(file, "it has the format of PyTorch before version 1.6", resave);
  if (bytes > tar_magic_at && start.substr(tar_magic_at).starts_with("ustar"))
    refuse_pickle(file, "it has the format of PyTorch before version 0.1.10", resave);
  if (start.starts_with('\x80'))
    refuse_pickle(file, "it is only a pickle, without storages", "save it with torch.save");
  if (start.size() > 8 && start[8] == '{')
    refuse_pickle(file, "it seems to be a safetensors file", "rename it to end in .safetensors");
  refuse_pickle(file, "it does not begin as a zip archive",
                "it is truncated, damaged, or of another format: write or copy it again");
}

PickleArchive open_archive(const FixedFile& file, ForeignObjects foreign) {
  require_zip(file);
  const auto read_at = [&](std::uint64_t offset, void* data, std::size_t bytes) { file.read_at(offset, data, bytes); };
  try {
    PickleArchive archive({.bytes = file.bytes(), .read_at = read_at}, foreign);
    file.require_unchanged();
    return archive;
  } catch (const ZipFault& fault) {
    refuse_pickle(file, fault.what(), "it is truncated or damaged: write or copy it again");
  } catch (const PickleFault& fault) {
    refuse_pickle(file, fault.what(), "save state dicts: torch.save(model.state_dict(), name)");
  }
}

using Names = std::vector<std::pair<std::string, PickledTensor>>;

void collect(const PickleValue& value, const std::string& name, Names& found);

/// The name of an element of a container.
std::string name_within(const std::string& name, const std::string& element) {
  return name.empty() ? element : name + "." + element;
}

void collect_items(const PickleValue::List& items, const std::string& name, Names& found) {
  for (std::size_t i = 0; i < items.size(); ++i) collect(items[i], name_within(name, std::to_string(i)), found);
}

void collect(const PickleValue& value, const std::string& name, Names& found) {
  if (const auto* tensor = std::get_if<PickledTensor>(&value.content)) {
    found.emplace_back(name, *tensor);
  } else if (const auto* list = std::get_if<PickleValue::List>(&value.content)) {
    collect_items(*list, name, found);
  } else if (const auto* tuple = std::get_if<PickleValue::Tuple>(&value.content)) {
    collect_items(tuple->items, name, found);
  } else if (const auto* dict = std::get_if<PickleValue::Dict>(&value.content)) {
    for (const auto& [key, item] : *dict) {
      if (const auto* text = std::get_if<std::string>(&key.content)) collect(item, name_within(name, *text), found);
      if (const auto* number = std::get_if<std::int64_t>(&key.content))
        collect(item, name_within(name, std::to_string(*number)), found);
    }
  }
}

}  // namespace

struct PickleFile::Content {
  Content(const std::filesystem::path& path, ForeignObjects foreign)
      : file(path), archive(open_archive(file, foreign)) {
    Names found;
    collect(archive.value(), "", found);
    for (auto& [name, tensor] : found) {
      if (!tensors.emplace(name, std::move(tensor)).second)
        refuse_pickle(file, text::concat("it has two tensors named ", text::quote(name)), "give them different names");
      names.push_back(name);
    }
  }

  /// The offset of the tensor's first element in the file. Only for tensors that have elements.
  std::uint64_t offset_of(const PickledTensor& tensor) const {
    return archive.storage(tensor).offset +
           static_cast<std::uint64_t>(tensor.first) * c10::elementSize(tensor.spec.type);
  }

  std::shared_ptr<const FileMap> map() const {
    const std::lock_guard lock(mapping);
    if (mapped == nullptr) mapped = std::make_shared<const FileMap>(file);
    return mapped;
  }

  FixedFile file;
  PickleArchive archive;
  std::vector<std::string> names;
  std::map<std::string, PickledTensor> tensors;
  mutable std::mutex mapping;
  mutable std::shared_ptr<const FileMap> mapped;
};

PickleFile::PickleFile(const std::filesystem::path& path, ForeignObjects foreign)
    : content_(std::make_shared<const Content>(path, foreign)) {}

const std::filesystem::path& PickleFile::path() const { return content_->file.path(); }
const std::vector<std::string>& PickleFile::names() const { return content_->names; }
bool PickleFile::contains(const std::string& name) const { return content_->tensors.contains(name); }
const PickleValue& PickleFile::value() const { return content_->archive.value(); }

const PickledTensor& PickleFile::tensor(const std::string& name) const {
  const auto found = content_->tensors.find(name);
  if (found != content_->tensors.end()) return found->second;
  throw UsageError({.what = text::concat(path(), " has no tensor ", text::quote(name)),
                    .hint = text::suggestion(name, content_->names)});
}

at::Tensor PickleFile::get(const PickledTensor& tensor) const {
  const auto reach = tensor.reach();
  if (reach == 0) return at::empty(tensor.spec.shape, tensor.spec.type);
  auto flat = at::empty({reach}, tensor.spec.type);
  content_->file.read_at(content_->offset_of(tensor), flat.mutable_data_ptr(), flat.nbytes());
  content_->file.require_unchanged();
  return flat.as_strided(tensor.spec.shape, tensor.strides);
}

at::Tensor PickleFile::get_rows(const std::string& name, std::int64_t first, std::int64_t count) const {
  auto rows = tensor(name);
  if (rows.spec.shape.empty()) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(name), " of ", path(), " has no rows"),
                      .why = "it is a scalar"});
  }
  const auto all = rows.spec.shape.front();
  if (first < 0 || count < 0 || first > all - count) {
    throw UsageError({.what = text::concat("The tensor ", text::quote(name), " of ", path(), " has no ", count,
                                           " rows from row ", first, ": it has ", all)});
  }
  rows.spec.shape.front() = count;
  if (rows.reach() > 0) rows.first += first * rows.strides.front();
  return get(rows);
}

at::Tensor PickleFile::view(const std::string& name) const {
  const auto& found = tensor(name);
  if (found.reach() == 0) return get(found);
  const auto offset = content_->offset_of(found);
  if (offset % c10::elementSize(found.spec.type) != 0) return get(found);
  auto map = content_->map();
  return at::from_blob(
      map->data() + offset, found.spec.shape, found.strides, [map](void*) {}, at::TensorOptions(found.spec.type));
}

}  // namespace hortator::formats
