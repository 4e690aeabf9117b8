#include "support/far_device.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace hortator::test {
namespace {

std::atomic<std::int64_t> in_use = 0;
std::atomic<std::int64_t> peak = 0;

void count(std::int64_t bytes) {
  const auto now = in_use += bytes;
  for (auto known = peak.load(); known < now && !peak.compare_exchange_weak(known, now);) {
  }
}

struct Block {
  void* memory;
  std::int64_t bytes;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  count(-block->bytes);
  std::free(block->memory);
  delete block;
}

class FarMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, far_device};
    auto* memory = std::malloc(bytes);
    std::memset(memory, 0xff, bytes);  // NaN, in every type that has one
    count(static_cast<std::int64_t>(bytes));
    auto* there = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) | far_bit);  // NOLINT
    return {there, new Block{memory, static_cast<std::int64_t>(bytes)}, release, far_device};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(near(to), near(from), bytes);
  }
};

FarMemory& far_memory() {
  static auto& memory = *new FarMemory;
  return memory;
}

/// The streams other than the default one: copies in the order in which they were submitted.
class LateStreams {
 public:
  struct StreamPosition {
    c10::StreamId stream = 0;
    std::uint64_t submitted = 0;
  };

  void give(c10::StreamId stream, std::function<void()> copy) {
    const std::lock_guard lock(mutex_);
    auto& queue = queues_[stream];
    ++queue.submitted;
    queue.copies.push_back(std::move(copy));
  }
  StreamPosition end_of(c10::StreamId stream) {
    const std::lock_guard lock(mutex_);
    return {stream, queues_[stream].submitted};
  }
  bool has_passed(const StreamPosition& position) {
    const std::lock_guard lock(mutex_);
    return queues_[position.stream].done >= position.submitted;
  }
  void run_to(const StreamPosition& position) {
    const std::lock_guard lock(mutex_);
    auto& queue = queues_[position.stream];
    for (; queue.done < position.submitted; ++queue.done) {
      queue.copies.front()();
      queue.copies.pop_front();
    }
  }
  void run_all() {
    for (c10::StreamId stream = 0; stream <= last_; ++stream) run_to(end_of(stream));
  }
  c10::StreamId make() { return ++last_; }
  std::int64_t to_come() {
    const std::lock_guard lock(mutex_);
    std::uint64_t copies = 0;
    for (const auto& [stream, queue] : queues_) copies += queue.submitted - queue.done;
    return static_cast<std::int64_t>(copies);
  }

 private:
  struct Queue {
    std::uint64_t submitted = 0;
    std::uint64_t done = 0;
    std::deque<std::function<void()>> copies = {};
  };
  std::mutex mutex_;
  std::map<c10::StreamId, Queue> queues_;
  std::atomic<c10::StreamId> last_ = 0;
};

LateStreams& streams() {
  static auto& all = *new LateStreams;
  return all;
}

thread_local c10::StreamId current_stream = 0;

c10::Stream stream_of(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, far_device, id); }

const c10::DispatchKeySet far_keys(c10::DispatchKey::PrivateUse1);

at::Tensor far_empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                     std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/,
                     std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &far_memory(), far_keys, c10::dtype_or_default(type), format);
}

at::Tensor far_empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                             std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                             std::optional<bool> /*pin*/) {
  return at::detail::empty_strided_generic(sizes, strides, &far_memory(), far_keys, c10::dtype_or_default(type));
}

/// Returns a CPU tensor of the same elements.
at::Tensor near_view(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  auto* memory = near(static_cast<std::byte*>(const_cast<void*>(tensor.const_data_ptr())));
  return at::from_blob(memory, tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()));
}

at::Tensor far_copy(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  auto copy = [from = near_view(from), to = near_view(to)] { to.copy_(from); };
  if (non_blocking && current_stream != 0) {
    streams().give(current_stream, std::move(copy));
  } else {
    copy();
  }
  return to;
}

at::Tensor far_copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    auto& storage = *to.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(far_memory().allocate(from.nbytes()));
    storage.set_nbytes(from.nbytes());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return far_copy(from, to, false);
}

const at::Tensor& far_resize(const at::Tensor& tensor, at::IntArrayRef sizes,
                             std::optional<at::MemoryFormat> /*format*/) {
  auto* impl = tensor.unsafeGetTensorImpl();
  const auto bytes = at::detail::computeStorageNbytesContiguous(sizes, tensor.element_size());
  auto& storage = *impl->unsafe_storage().unsafeGetStorageImpl();
  if (bytes > storage.nbytes()) {
    storage.set_data_ptr_noswap(far_memory().allocate(bytes));
    storage.set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor& far_set(at::Tensor& tensor, at::Storage storage, std::int64_t offset, at::IntArrayRef sizes,
                    at::IntArrayRef strides) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, strides);
  return tensor;
}

// As between CPU and CUDA: to() replaces the memory of a parameter.
bool far_may_take_place(const at::Tensor& /*tensor*/, const at::Tensor& /*from*/) { return true; }

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

/// One device. Work on the default stream is done at once, so nothing waits for it.
struct FarGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return far_device; }
  c10::Device getDevice() const override { return far_device; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream_of(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream_of(streams().make()); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream_of(std::exchange(current_stream, next.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new LateStreams::StreamPosition;
    position_of(*event) = streams().end_of(stream.id());
  }
  void block(void* event, const c10::Stream&) const override { streams().run_to(position_of(event)); }
  bool queryEvent(void* event) const override { return event == nullptr || streams().has_passed(position_of(event)); }
  void synchronizeEvent(void* event) const override { streams().run_to(position_of(event)); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete &position_of(event); }
  bool queryStream(const c10::Stream& stream) const override {
    return streams().has_passed(streams().end_of(stream.id()));
  }
  void synchronizeStream(const c10::Stream& stream) const override { streams().run_to(streams().end_of(stream.id())); }
  void synchronizeDevice(c10::DeviceIndex) const override { streams().run_all(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  static LateStreams::StreamPosition& position_of(void* event) {
    return *static_cast<LateStreams::StreamPosition*>(event);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", far_empty);
  library.impl("empty_strided", far_empty_strided);
  library.impl("_copy_from", far_copy);
  library.impl("_copy_from_and_resize", far_copy_and_resize);
  library.impl("resize_", far_resize);
  library.impl("set_.source_Storage_storage_offset", far_set);
  library.impl("_has_compatible_shallow_copy_type", far_may_take_place);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(at::native::view));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>()); }

[[maybe_unused]] const bool has_memory = (c10::SetAllocator(c10::kPrivateUse1, &far_memory()), true);

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, FarGuard);

std::int64_t far_bytes() { return in_use; }
std::int64_t far_peak() { return peak; }
std::int64_t far_copies_to_come() { return streams().to_come(); }
void reset_far_peak() { peak = in_use.load(); }

}  // namespace hortator::test
