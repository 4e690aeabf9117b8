// What a device does, by Level Zero's system management.
#include "machine/device/monitors/level_zero.hpp"

#include <utility>

#include "machine/device/monitor.hpp"

namespace hortator::machine {
namespace {

// Constants of zes_api.h.
constexpr std::uint32_t sysman_pci_kind = 0x2;
constexpr std::uint32_t sysman_engine_kind = 0x5;
constexpr std::uint32_t sysman_memory_kind = 0x1e;
constexpr std::uint32_t all_engines = 0;
struct EngineProperties {
  LevelZeroHeader header{.kind = sysman_engine_kind};
  std::uint32_t group = 0;
  std::uint8_t is_of_part = 0;
  std::uint32_t part = 0;
};
struct EngineTime {
  std::uint64_t active = 0;  ///< microseconds
  std::uint64_t now = 0;
};
struct MemoryState {
  LevelZeroHeader header{.kind = sysman_memory_kind};
  std::uint32_t health = 0;
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

class LevelZeroMonitor final : public DeviceMonitor {
 public:
  LevelZeroMonitor(const char* file, const std::string& pci_address) : library_(file) {
    const auto address = parse_pci_address(pci_address);
    if (!address || !library_.call("zesInit", std::uint32_t{0})) return;
    find_device(*address);
    if (device_ == nullptr) return;
    memories_ = level_zero_handles(library_, "zesDeviceEnumMemoryModules", device_);
    for (auto* const engine : level_zero_handles(library_, "zesDeviceEnumEngineGroups", device_)) {
      EngineProperties properties;
      if (library_.call("zesEngineGetProperties", engine, &properties) && properties.group == all_engines)
        engines_.push_back(engine);
    }
    before_ = time_of_engines();
  }

  std::optional<DeviceUse> look() override {
    if (memories_.empty()) return {};
    DeviceUse use{.busy = busy_since_last_look()};
    for (auto* const memory : memories_) {
      MemoryState state;
      if (!library_.call("zesMemoryGetState", memory, &state)) return {};
      use.total_bytes += state.total;
      use.used_bytes += state.total - state.free;
    }
    return use;
  }

 private:
  void find_device(const PciAddress& address) {
    for (auto* const driver : level_zero_handles(library_, "zesDriverGet")) {
      for (auto* const device : level_zero_handles(library_, "zesDeviceGet", driver)) {
        LevelZeroPci pci{.header = {.kind = sysman_pci_kind}};
        if (library_.call("zesDevicePciGetProperties", device, &pci) && pci.address == address) device_ = device;
      }
    }
  }

  // A device of several tiles has an engine group for each: their sum.
  std::optional<EngineTime> time_of_engines() const {
    EngineTime sum;
    for (auto* const engine : engines_) {
      EngineTime one;
      if (!library_.call("zesEngineGetActivity", engine, &one)) return {};
      sum.active += one.active;
      sum.now += one.now;
    }
    return engines_.empty() ? std::nullopt : std::optional(sum);
  }

  std::optional<double> busy_since_last_look() {
    const auto now = time_of_engines();
    const auto before = std::exchange(before_, now);
    if (!now || !before || now->now <= before->now || now->active < before->active) return {};
    return static_cast<double>(now->active - before->active) / static_cast<double>(now->now - before->now);
  }

  LoadedLibrary library_;
  void* device_ = nullptr;
  std::vector<void*> memories_;
  std::vector<void*> engines_;
  std::optional<EngineTime> before_;
};

}  // namespace

std::unique_ptr<DeviceMonitor> open_level_zero(const char* file, const DeviceIdentity& device) {
  return std::make_unique<LevelZeroMonitor>(file, device.pci_address);
}

}  // namespace hortator::machine
