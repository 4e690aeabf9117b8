#include "weights/deepspeed/zero_file.hpp"

#include <ATen/ops/empty.h>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::weights {

using formats::PickledTensor;

ZeroFile::ZeroFile(formats::FilePool& files, const std::filesystem::path& path)
    : number_(files.add(path)), file_(files.get(number_)), archive_(open()) {}

void ZeroFile::refuse(std::string_view why) const {
  throw formats::FileError({.what = text::concat(file_->path(), " is not valid: ", why),
                            .hint = "it is truncated, damaged, or of another save: copy the folder again"});
}

formats::PickleArchive ZeroFile::open() const {
  const auto read_at = [&](std::uint64_t at, void* data, std::size_t bytes) { file_->read_at(at, data, bytes); };
  try {
    return formats::PickleArchive({.bytes = file_->bytes(), .read_at = read_at}, formats::ForeignObjects::kept);
  } catch (const formats::ZipFault& fault) {
    refuse(fault.what());
  } catch (const formats::PickleFault& fault) {
    refuse(fault.what());
  }
}

std::uint64_t ZeroFile::offset_of(const PickledTensor& tensor) const {
  if (tensor.reach() == 0) return 0;
  return archive_.storage(tensor).offset + static_cast<std::uint64_t>(tensor.first * tensor.spec.element_bytes());
}

StoredTensor ZeroFile::stored(const PickledTensor& tensor) const {
  if (!tensor.is_row_major()) refuse("it has a tensor whose elements are not in row-major order");
  StoredTensor whole{.spec = tensor.spec};
  if (tensor.reach() > 0)
    whole.slices.push_back({.file = number_, .offset = offset_of(tensor), .elements = {0, tensor.spec.elements()}});
  return whole;
}

void ZeroFile::read_numbers(formats::PickleValue::Dict& dict) const {
  for (auto& [key, value] : dict) {
    const auto* tensor = std::get_if<PickledTensor>(&value.content);
    if (tensor == nullptr || tensor->spec.elements() != 1) continue;
    auto number = at::empty({}, tensor->spec.type);
    file_->read_at(offset_of(*tensor), number.mutable_data_ptr(), number.nbytes());
    value.content = number.item<double>();
  }
}

}  // namespace hortator::weights
