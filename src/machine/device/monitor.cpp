#include "machine/device/monitor.hpp"

#include <dlfcn.h>

namespace hortator::machine {
namespace {

// The structs of nvml.h. Return code 0 is success.
struct NvmlUtilization {
  unsigned busy_percent;
  unsigned memory_percent;
};
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// Calls a function of the library by its name; false if the function does not exist or fails.
template <typename... Arguments>
bool call(void* library, const char* name, Arguments... arguments) {
  auto* function = library == nullptr ? nullptr : dlsym(library, name);
  return function != nullptr && reinterpret_cast<int (*)(Arguments...)>(function)(arguments...) == 0;
}

}  // namespace

DeviceMonitor::DeviceMonitor(const std::string& uuid, const char* library)
    : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)), is_started_(call(library_, "nvmlInit_v2")) {
  const auto* name = uuid.c_str();
  if (!is_started_ || !call(library_, "nvmlDeviceGetHandleByUUID", name, &device_)) device_ = nullptr;
}

// Other code of this process may use the library as well; it counts initialisations.
DeviceMonitor::~DeviceMonitor() {
  if (is_started_) call(library_, "nvmlShutdown");
  if (library_ != nullptr) dlclose(library_);
}

std::optional<DeviceUse> DeviceMonitor::look() const {
  NvmlMemory memory{};
  if (device_ == nullptr || !call(library_, "nvmlDeviceGetMemoryInfo", device_, &memory)) return {};
  DeviceUse use{.used_bytes = memory.used, .total_bytes = memory.total};
  NvmlUtilization rates{};
  if (call(library_, "nvmlDeviceGetUtilizationRates", device_, &rates)) use.busy = rates.busy_percent / 100.0;
  return use;
}

}  // namespace hortator::machine
