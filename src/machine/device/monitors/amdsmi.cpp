#include "machine/device/device.hpp"
#include "machine/device/monitor.hpp"
#include "machine/device/monitors/loaded_library.hpp"
#include "machine/device/monitors/pci_address.hpp"

namespace hortator::machine {
namespace {

// Constants of amdsmi.h.
constexpr std::uint64_t amdsmi_gpus = 2;
constexpr int amdsmi_device_memory = 0;

// amdsmi_bdf_t: 3 bits of the function, 5 of the device, 8 of the bus, 48 of the domain.
std::uint64_t packed(const PciAddress& address) {
  return address.function | address.device << 3U | address.bus << 8U | std::uint64_t{address.domain} << 16U;
}

class AmdsmiMonitor final : public DeviceMonitor {
 public:
  AmdsmiMonitor(const char* file, const std::string& pci_address)
      : library_(file), is_started_(library_.call("amdsmi_init", amdsmi_gpus)) {
    const auto address = parse_pci_address(pci_address);
    if (!is_started_ || !address || !library_.call("amdsmi_get_processor_handle_from_bdf", packed(*address), &device_))
      device_ = nullptr;
  }
  ~AmdsmiMonitor() override {
    if (is_started_) library_.call("amdsmi_shut_down");
  }

  std::optional<DeviceUse> look() override {
    DeviceUse use;
    if (device_ == nullptr ||
        !library_.call("amdsmi_get_gpu_memory_total", device_, amdsmi_device_memory, &use.total_bytes) ||
        !library_.call("amdsmi_get_gpu_memory_usage", device_, amdsmi_device_memory, &use.used_bytes))
      return {};
    std::uint32_t percent = 0;
    if (library_.call("amdsmi_get_gpu_busy_percent", device_, &percent)) use.busy = percent / 100.0;
    return use;
  }

 private:
  LoadedLibrary library_;
  bool is_started_;
  void* device_ = nullptr;  ///< amdsmi_processor_handle
};

}  // namespace

std::unique_ptr<DeviceMonitor> open_amdsmi(const char* file, const DeviceIdentity& device) {
  return std::make_unique<AmdsmiMonitor>(file, device.pci_address);
}

}  // namespace hortator::machine
