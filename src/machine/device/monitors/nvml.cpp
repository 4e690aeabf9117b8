#include "machine/device/device.hpp"
#include "machine/device/monitor.hpp"
#include "machine/device/monitors/loaded_library.hpp"

namespace hortator::machine {
namespace {

// The structs of nvml.h.
struct NvmlUtilization {
  unsigned busy_percent;
  unsigned memory_percent;
};
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

class NvmlMonitor final : public DeviceMonitor {
 public:
  NvmlMonitor(const char* file, const std::string& uuid) : library_(file), is_started_(library_.call("nvmlInit_v2")) {
    const auto* name = uuid.c_str();
    if (!is_started_ || !library_.call("nvmlDeviceGetHandleByUUID", name, &device_)) device_ = nullptr;
  }
  // Other code of this process may use the library as well; it counts initialisations.
  ~NvmlMonitor() override {
    if (is_started_) library_.call("nvmlShutdown");
  }

  std::optional<DeviceUse> look() override {
    NvmlMemory memory{};
    if (device_ == nullptr || !library_.call("nvmlDeviceGetMemoryInfo", device_, &memory)) return {};
    DeviceUse use{.used_bytes = memory.used, .total_bytes = memory.total};
    NvmlUtilization rates{};
    if (library_.call("nvmlDeviceGetUtilizationRates", device_, &rates)) use.busy = rates.busy_percent / 100.0;
    unsigned long long millijoules = 0;
    if (library_.call("nvmlDeviceGetTotalEnergyConsumption", device_, &millijoules))
      use.joules = static_cast<double>(millijoules) * 1e-3;
    return use;
  }

 private:
  LoadedLibrary library_;
  bool is_started_;
  void* device_ = nullptr;  ///< nvmlDevice_t
};

}  // namespace

std::unique_ptr<DeviceMonitor> open_nvml(const char* file, const DeviceIdentity& device) {
  return std::make_unique<NvmlMonitor>(file, device.uuid);
}

}  // namespace hortator::machine
