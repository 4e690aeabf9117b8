#include "accelerator/training/memory_by_owner.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <unordered_set>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "interception/dispatch_keys.hpp"
#include "machine/device/memory.hpp"
#include "paging/frame_pool.hpp"
#include "parallel/data_parallel/backward_pass.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::accelerator {
namespace {

/// Adds up memory of one device, each storage once.
class Tally {
 public:
  explicit Tally(c10::Device device) : device_(device) {}
  void add(std::uint64_t& bytes, const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.device() != device_) return;
    if (!device_.is_cpu() && interception::carries_key(tensor)) return;  // its memory is a frame's, or none
    const auto& storage = tensor.storage();
    if (seen_.insert(storage.unsafeGetStorageImpl()).second) bytes += storage.nbytes();
  }

 private:
  c10::Device device_;
  std::unordered_set<const void*> seen_;
};

/// Adds up the tensors in an optimizer's state of one parameter.
class Moments final : public step::FieldVisitor {
 public:
  Moments(Tally& tally, std::uint64_t& bytes) : tally_(tally), bytes_(bytes) {}
  void field(std::string_view /*name*/, double& /*value*/) override {}
  void field(std::string_view /*name*/, std::int64_t& /*value*/) override {}
  void field(std::string_view /*name*/, bool& /*value*/) override {}
  void field(std::string_view /*name*/, at::Tensor& value) override { tally_.add(bytes_, value); }
  void field(std::string_view /*name*/, std::deque<at::Tensor>& values) override {
    for (const auto& value : values) tally_.add(bytes_, value);
  }

 private:
  Tally& tally_;
  std::uint64_t& bytes_;
};

}  // namespace

DeviceMemory device_memory(c10::Device device) {
  if (device.is_cpu()) return {};
  auto* allocator = c10::getDeviceAllocator(device.type());
  if (!allocator->initialized()) return {};
  const auto stats = allocator->getDeviceStats(device.index());
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {.allocated_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].current),
          .peak_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].peak),
          .reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes[all].current)};
}

std::vector<std::pair<std::string, double>> device_memory_values(const DeviceMemory& memory) {
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (std::int64_t{1} << 30); };
  return {{"device_memory_gib", gib(memory.allocated_bytes)}, {"device_memory_peak_gib", gib(memory.peak_bytes)}};
}

MemoryByOwner memory_by_owner(const Training& training, c10::Device device) {
  MemoryByOwner owners{.pages = device.is_cpu() ? 0 : paging::FramePool::bytes_on_devices()};
  Tally tally(device);
  for (const auto& model : training.prepared.models()) {
    for (const auto& [name, parameter] : model->parameters()) tally.add(owners.parameters, parameter);
    for (const auto& buffer : model->module().buffers()) tally.add(owners.buffers, buffer);
    for (const auto& holder : model->gradient_holders()) {
      // Gradients on another device may be changed by another thread.
      if (holder.device() == device) tally.add(owners.gradients, holder.grad());
    }
  }
  for (const auto& optimizer : training.prepared.optimizers()) {
    for (const auto& [parameter, state] : optimizer->optimizer().state()) {
      Moments moments(tally, owners.optimizers);
      step::visit_fields(*state, moments);
    }
  }
  return owners;
}

std::string describe(const MemoryByOwner& owners, const DeviceMemory& memory) {
  const auto known = owners.parameters + owners.buffers + owners.gradients + owners.optimizers + owners.pages;
  const auto others = memory.allocated_bytes > known ? memory.allocated_bytes - known : 0;
  return text::concat("parameters ", units::bytes(owners.parameters), ", buffers ", units::bytes(owners.buffers),
                      ", gradients ", units::bytes(owners.gradients), ", optimizers ", units::bytes(owners.optimizers),
                      ", pages ", units::bytes(owners.pages), ", activations and others ", units::bytes(others),
                      "; kept for the next tensors ",
                      units::bytes(memory.reserved_bytes - std::min(memory.reserved_bytes, memory.allocated_bytes)),
                      "; the most at once was ", units::bytes(memory.peak_bytes));
}

// A thread in backward changes the gradients itself, while the training thread waits for it. Other threads, such as a
// loader's, would look at models and optimizers that the training thread changes.
bool may_read_owners(std::thread::id training_thread) {
  return std::this_thread::get_id() == training_thread || parallel::current_graph_task() != parallel::no_graph_task;
}

std::string describe_without_owners(const DeviceMemory& memory) {
  return text::concat("allocated ", units::bytes(memory.allocated_bytes), ", kept for the next tensors ",
                      units::bytes(memory.reserved_bytes - std::min(memory.reserved_bytes, memory.allocated_bytes)),
                      "; the most at once was ", units::bytes(memory.peak_bytes));
}

std::string out_of_memory_report(const Training& training, std::thread::id training_thread, c10::Device device) {
  const auto memory = device_memory(device);
  if (!may_read_owners(training_thread)) return "Its memory: " + describe_without_owners(memory);
  return "Who has its memory: " + describe(memory_by_owner(training, device), memory);
}

MemoryWatch::MemoryWatch(const Training& training) : watches_(!training.device().is_cpu()) {
  if (!watches_) return;
  machine::on_out_of_memory([&training, thread = std::this_thread::get_id()](std::uint64_t asked) {
    const auto device = training.device();
    log::warn("no ", units::bytes(asked), " more on ", device.str(), ". ",
              out_of_memory_report(training, thread, device));
  });
}

MemoryWatch::~MemoryWatch() {
  if (watches_) machine::on_out_of_memory({});
}

}  // namespace hortator::accelerator
