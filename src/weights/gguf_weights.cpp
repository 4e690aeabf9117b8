#include "weights/gguf_weights.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/gguf/blocks.hpp"
#include "formats/gguf/file.hpp"

namespace hortator::weights {
namespace {

using formats::FileError;
using formats::GgufTensor;
using formats::GgufType;

at::ScalarType scalar_type_of(const GgufType& type) {
  if (type.name == "F16") return at::kHalf;
  if (type.name == "BF16") return at::kBFloat16;
  return at::kFloat;  // F32, and what quantised types become
}

bool is_plain(const GgufType& type) { return type.block_elements == 1; }

std::int64_t row_elements(const GgufTensor& tensor) {
  std::int64_t elements = 1;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) elements *= tensor.shape[i];
  return elements;
}

}  // namespace

GgufWeights::GgufWeights(const std::filesystem::path& path) : file_(path), header_(formats::read_gguf_header(file_)) {
  file_.expect_front_to_back();
  try {
    for (const auto& tensor : header_.tensors) add(tensor);
  } catch (const formats::GgufFault& fault) {
    formats::throw_invalid_gguf(path, fault);
  }
}

void GgufWeights::add(const GgufTensor& tensor) {
  auto role = gguf_role(header_, tensor.name);
  if (!role) return;
  const auto rows = tensor.shape.empty() ? 0 : tensor.shape.front();
  if (role->heads > 0 && rows % (2 * role->heads) != 0) {
    throw formats::GgufFault(
        text::concat("the tensor ", text::quote(role->name), " has ", rows, " rows for ", role->heads, " heads"));
  }
  if (!entries_.emplace(role->name, Entry{.tensor = &tensor, .heads = role->heads}).second)
    throw formats::GgufFault(text::concat("two tensors are ", text::quote(role->name)));
  names_.push_back(std::move(role->name));
}

const GgufWeights::Entry& GgufWeights::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw UsageError({.what = text::concat(file_.path(), " has no tensor ", text::quote(name)),
                    .hint = text::suggestion(name, names_)});
}

const GgufType& GgufWeights::type_of(const std::string& name, const GgufTensor& tensor) const {
  if (tensor.type != nullptr) return *tensor.type;
  throw FileError({.what = text::concat("The tensor ", text::quote(name), " of ", file_.path(),
                                        " has elements of GGUF's type ", tensor.type_code, ", which cannot be read"),
                   .hint = text::concat("known are ", text::join(formats::gguf_type_names()),
                                        ": take a file with one of these quantisations")});
}

formats::TensorSpec GgufWeights::spec(const std::string& name) const {
  const auto& tensor = *entry(name).tensor;
  return {.type = scalar_type_of(type_of(name, tensor)), .shape = tensor.shape};
}

std::optional<FileSpan> GgufWeights::span(const std::string& name) const {
  const auto& [tensor, heads] = entry(name);
  if (heads > 0 || !is_plain(type_of(name, *tensor))) return {};
  return FileSpan{.file = &file_, .offset = tensor->offset};
}

std::string GgufWeights::block_type(const std::string& name) const {
  const auto& type = type_of(name, *entry(name).tensor);
  return is_plain(type) ? std::string() : std::string(type.name);
}

std::int64_t GgufWeights::block_bytes(const std::string& name) const {
  return type_of(name, *entry(name).tensor).block_bytes;
}

void GgufWeights::read_blocks_of_row(const std::string& name, std::int64_t row, std::byte* to) const {
  const auto& [tensor, heads] = entry(name);
  const auto stored = heads > 0 ? gguf_row(row, tensor->shape.front(), heads) : row;
  const auto& type = type_of(name, *tensor);
  const auto bytes = row_elements(*tensor) / type.block_elements * type.block_bytes;
  file_.read_at(tensor->offset + static_cast<std::uint64_t>(stored * bytes), to, static_cast<std::size_t>(bytes));
}

void GgufWeights::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto& [tensor, heads] = entry(name);
  const auto element = static_cast<std::int64_t>(c10::elementSize(scalar_type_of(type_of(name, *tensor))));
  if (heads == 0) return read_stored(*tensor, elements, to);
  const auto row = row_elements(*tensor);
  for (auto begin = elements.begin; begin < elements.end;) {
    const auto end = std::min(elements.end, (begin / row + 1) * row);
    const auto moved = (gguf_row(begin / row, tensor->shape.front(), heads) - begin / row) * row;
    read_stored(*tensor, {begin + moved, end + moved}, to);
    to += (end - begin) * element;
    begin = end;
  }
}

/// Reads elements in the order of the file; of quantised types, a limited number of blocks at a time.
void GgufWeights::read_stored(const GgufTensor& tensor, core::Range elements, std::byte* to) const {
  const auto& type = *tensor.type;
  if (is_plain(type)) {
    const auto offset = tensor.offset + static_cast<std::uint64_t>(elements.begin * type.block_bytes);
    file_.read_at(offset, to, static_cast<std::size_t>(elements.size() * type.block_bytes));
    return;
  }
  const auto size = type.block_elements;
  const auto blocks = (elements.end + size - 1) / size - elements.begin / size;
  const auto blocks_at_a_time = std::min<std::int64_t>(blocks, 512);
  std::vector<std::byte> stored(static_cast<std::size_t>(blocks_at_a_time * type.block_bytes));
  std::vector<float> values(static_cast<std::size_t>(blocks_at_a_time * size));
  for (auto begin = elements.begin; begin < elements.end;) {
    const auto first = begin / size;  // a range may begin or end within a block
    const auto last = std::min((elements.end + size - 1) / size, first + blocks_at_a_time);
    const auto offset = tensor.offset + static_cast<std::uint64_t>(first * type.block_bytes);
    file_.read_at(offset, stored.data(), static_cast<std::size_t>((last - first) * type.block_bytes));
    formats::dequantise(type, stored.data(), (last - first) * size, values.data());
    const auto end = std::min(elements.end, last * size);
    const auto bytes = static_cast<std::size_t>(end - begin) * sizeof(float);
    std::memcpy(to, values.data() + (begin - first * size), bytes);
    to += bytes;
    begin = end;
  }
}

}  // namespace hortator::weights
