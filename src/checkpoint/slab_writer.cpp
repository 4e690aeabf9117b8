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
  const bool is_ready = piece.is_cpu() && piece.is_contiguous() && !piece.is_conj() && !piece.is_neg();
  return is_ready ? piece : piece.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
}

void SlabWriter::add(const Source& source, std::int64_t offset) {
  const auto most = block_bytes / static_cast<std::int64_t>(source.tensor.element_size());
  checksums_.begin_slab();
  io::for_each_piece(source.tensor, source.in_tensor(), most, [&](const at::Tensor& piece) {
    const auto host = ready_to_store(piece);
    const auto* data = static_cast<const std::byte*>(host.const_data_ptr());
    for (std::size_t done = 0; done < host.nbytes(); done += hot_bytes) {
      const auto bytes = std::min(hot_bytes, host.nbytes() - done);
      checksums_.add(data + done, bytes);
      put(offset, data + done, bytes);
      offset += static_cast<std::int64_t>(bytes);
    }
  });
}

void SlabWriter::put(std::int64_t offset, const std::byte* data, std::size_t bytes) {
  const auto gap = offset - (gathered_at_ + static_cast<std::int64_t>(gathered_.size()));
  const bool joins = gap >= 0 && gap <= widest_gap && gathered_.size() + bytes <= gathered_bytes;
  if (!gathered_.empty() && (bytes >= small_bytes || !joins)) flush();
  if (bytes >= small_bytes) {
    file_.write_at(offset, data, bytes);
    return written(offset + static_cast<std::int64_t>(bytes));
  }
  if (gathered_.empty()) gathered_at_ = offset;
  gathered_.resize(static_cast<std::size_t>(offset - gathered_at_));
  gathered_.insert(gathered_.end(), data, data + bytes);
}

void SlabWriter::flush() {
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
  if (!gathered_.empty()) flush();
  return checksums_.take();
}

}  // namespace hortator::checkpoint
