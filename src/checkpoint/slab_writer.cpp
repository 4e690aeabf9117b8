#include "checkpoint/slab_writer.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "io/tensor_slab.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::size_t hot_bytes = std::size_t{1} << 19;       // so much stays in the cache between two looks at it
constexpr std::size_t small_bytes = std::size_t{1} << 17;     // less is gathered first
constexpr std::size_t gathered_bytes = std::size_t{1} << 20;  // of gathered pieces at most
constexpr std::int64_t widest_gap = 7;  // zeros are written over it; where it is wider another's bytes may lie in it
constexpr std::int64_t ahead_bytes = std::int64_t{16} << 20;  // written between two hints to the system

}  // namespace

at::Tensor ready_to_store(const at::Tensor& piece) {
  return io::lies_flat(piece) ? piece : piece.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
}

void SlabWriter::add(const Source& source, std::int64_t offset) {
  if (source.is_part) flush();
  add_slab(source, offset);
  if (source.is_part) flush();
}

void SlabWriter::add_slab(const Source& source, std::int64_t offset) {
  const auto element = static_cast<std::int64_t>(source.tensor.element_size());
  const auto elements = source.in_tensor();
  checksums_.begin_slab(source.slab.elements.begin * element);
  // Mostly so, and then there is no need for views, which cost more than a small tensor's bytes.
  if (io::lies_flat(source.tensor)) {
    const auto* data = static_cast<const std::byte*>(source.tensor.const_data_ptr());
    return add_bytes(offset, data + elements.begin * element, static_cast<std::size_t>(elements.size() * element));
  }
  io::for_each_piece(source.tensor, elements, block_bytes / element, [&](const at::Tensor& piece) {
    const auto host = ready_to_store(piece);
    add_bytes(offset, static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
    offset += static_cast<std::int64_t>(host.nbytes());
  });
}

void SlabWriter::add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += hot_bytes) {
    const auto count = std::min(hot_bytes, bytes - done);
    checksums_.add(data + done, count);
    put(offset + static_cast<std::int64_t>(done), data + done, count);
  }
}

void SlabWriter::put(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  const auto gap = offset - (gathered_at_ + static_cast<std::int64_t>(gathered_.size()));
  const bool joins = gap >= 0 && gap <= widest_gap && gathered_.size() + bytes <= gathered_bytes;
  if (bytes >= small_bytes || !joins) flush();
  if (bytes >= small_bytes) {
    file_.write_at(offset, data, bytes);
    return written(offset + static_cast<std::int64_t>(bytes));
  }
  if (gathered_.empty()) gathered_at_ = offset;
  gathered_.resize(static_cast<std::size_t>(offset - gathered_at_));
  gathered_.insert(gathered_.end(), data, data + bytes);
}

void SlabWriter::flush() {
  if (gathered_.empty()) return;
  file_.write_at(gathered_at_, gathered_.data(), gathered_.size());
  written(gathered_at_ + static_cast<std::int64_t>(gathered_.size()));
  gathered_.clear();
}

// The disk works while the next pieces are copied, in place of beginning with the last fsync.
void SlabWriter::written(std::int64_t end) {
  if (begun_ > end || end - begun_ > 2 * ahead_bytes) begun_ = std::max(end - ahead_bytes, std::int64_t{0});
  if (end - begun_ < ahead_bytes) return;
  file_.start_writing(begun_, static_cast<std::size_t>(end - begun_));
  begun_ = end;
}

std::vector<std::uint32_t> SlabWriter::finish() {
  flush();
  return checksums_.take();
}

}  // namespace hortator::checkpoint
