// A stand-in for AMD's management library: a device at 0001:c3:00.1 that computes 70 % of the time, and one at
// 0000:03:00.0 whose use is unknown.
#include <cstdint>

namespace {

int busy_device;
int silent_device;
int users = 0;

constexpr int success = 0;
constexpr int not_supported = 2;
constexpr int not_found = 31;
constexpr int video_memory = 0;

// As amdsmi.h lays it out.
union Address {
  struct {
    std::uint64_t function : 3;
    std::uint64_t device : 5;
    std::uint64_t bus : 8;
    std::uint64_t domain : 48;
  } parts;
  std::uint64_t number;
};

}  // namespace

extern "C" {

int fake_amdsmi_users() { return users; }

int amdsmi_init(std::uint64_t processors) {
  if (processors != 2) return not_supported;  // GPUs only
  ++users;
  return success;
}

int amdsmi_shut_down() {
  --users;
  return success;
}

int amdsmi_get_processor_handle_from_bdf(Address address, void** device) {
  const auto [function, slot, bus, domain] = address.parts;
  if (domain == 1 && bus == 0xc3 && slot == 0 && function == 1) {
    *device = &busy_device;
  } else if (domain == 0 && bus == 3 && slot == 0 && function == 0) {
    *device = &silent_device;
  } else {
    return not_found;
  }
  return success;
}

int amdsmi_get_gpu_memory_total(void* /*device*/, int memory, std::uint64_t* bytes) {
  if (memory != video_memory) return not_supported;
  *bytes = std::uint64_t{64} << 30;
  return success;
}

int amdsmi_get_gpu_memory_usage(void* device, int memory, std::uint64_t* bytes) {
  if (memory != video_memory) return not_supported;
  *bytes = device == &busy_device ? std::uint64_t{5} << 30 : 0;
  return success;
}

int amdsmi_get_gpu_busy_percent(void* device, std::uint32_t* percent) {
  if (device != &busy_device) return not_supported;
  *percent = 70;
  return success;
}
}
