#include "comm/shm/window.hpp"

#include <ATen/ops/from_blob.h>

#include <iterator>

#include "machine/shapes/counted_memory.hpp"
#include "runtime/identity/shared_name.hpp"

namespace hortator::comm {
namespace {

std::size_t bytes_of(std::int64_t elements, at::ScalarType type) {
  return static_cast<std::size_t>(elements) * at::elementSize(type);
}

// The bytes of one part when `parts` parts hold `bytes`.
std::size_t part_bytes(std::size_t bytes, int parts) {
  constexpr std::size_t page = 65536;  // a multiple of every page size, so that there are no gaps between parts
  const auto pages = (bytes + page - 1) / page;
  const auto count = static_cast<std::size_t>(parts);
  return (pages + count - 1) / count * page;
}

}  // namespace

at::Tensor NodeWindow::allocate(std::int64_t elements, at::ScalarType type) { return make(elements, type, false); }

at::Tensor NodeWindow::allocate_common(std::int64_t elements, at::ScalarType type) {
  return make(elements, type, true);
}

at::Tensor NodeWindow::make(std::int64_t elements, at::ScalarType type, bool is_common) {
  const auto bytes = bytes_of(elements, type);
  std::erase_if(segments_, [](const auto& item) { return item.second.expired(); });
  auto segment = std::make_shared<const NodeSegment>(
      NodeSegment{.id = next_id_++,
                  .is_common = is_common,
                  .memory = mpi::SharedMemory(node_, all_, is_common ? part_bytes(bytes, node_.size()) : bytes,
                                              runtime::shared_name("window"))});
  std::byte* begin = segment->memory.part(is_common ? 0 : node_.rank());
  if (bytes > 0) segments_[begin] = segment;
  machine::note_memory(begin, segment->memory.part_bytes(), "shared window");
  return at::from_blob(
      begin, {elements}, [segment](void* data) { machine::forget_memory(data); }, at::TensorOptions().dtype(type));
}

std::optional<WindowPosition> NodeWindow::find(const at::Tensor& tensor) const {
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto after = segments_.upper_bound(data);
  if (after == segments_.begin()) return {};
  const auto& [begin, weak] = *std::prev(after);
  const auto segment = weak.lock();
  if (!segment) return {};
  const auto parts = static_cast<std::size_t>(segment->is_common ? segment->memory.parts() : 1);
  const auto offset = static_cast<std::size_t>(data - begin);
  if (offset + tensor.nbytes() > parts * segment->memory.part_bytes()) return {};
  return WindowPosition{.segment = segment, .offset = static_cast<std::int64_t>(offset)};
}

}  // namespace hortator::comm
