#include "checkpoint/write/slice_writer.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "formats/tensor/tensor_slab.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::size_t hot_bytes = std::size_t{1} << 19;  // stays in the cache between the checksum and the write

}  // namespace

void SliceWriter::add(const TensorSource& source, std::int64_t offset) {
  if (source.is_part) pieces_.finish();
  add_slice(source, offset);
  if (source.is_part) pieces_.finish();
}

void SliceWriter::add_slice(const TensorSource& source, std::int64_t offset) {
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  const auto elements = source.in_tensor();
  checksums_.begin_slice(source.slice.elements.begin * element);
  // The usual case. It needs no views, which cost more than writing a small tensor.
  if (formats::lies_flat(source.tensor)) {
    const auto* data = static_cast<const std::byte*>(source.tensor.const_data_ptr());
    return add_bytes(offset, data + elements.begin * element, static_cast<std::size_t>(elements.size() * element));
  }
  formats::for_each_piece(source.tensor, elements, block_bytes / element, [&](const at::Tensor& piece) {
    const auto host = formats::ready_to_store(piece);
    add_bytes(offset, static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
    offset += static_cast<std::int64_t>(host.nbytes());
  });
}

void SliceWriter::add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += hot_bytes) {
    const auto count = std::min(hot_bytes, bytes - done);
    checksums_.add(data + done, count);
    pieces_.put(offset + static_cast<std::int64_t>(done), data + done, count);
  }
}

std::vector<std::uint32_t> SliceWriter::finish() {
  pieces_.finish();
  return checksums_.take();
}

}  // namespace hortator::checkpoint
