// A stand-in for NVIDIA's management library: a device that computes 40 % of the time, and a MIG instance whose
// utilization is unknown.
#include <cstring>

namespace {

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int whole_device;
int part_of_a_device;
int users = 0;

constexpr int success = 0;
constexpr int not_supported = 3;
constexpr int not_found = 6;

}  // namespace

extern "C" {

int fake_nvml_users() { return users; }

int nvmlInit_v2() {
  ++users;
  return success;
}

int nvmlShutdown() {
  --users;
  return success;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "GPU-whole") == 0) {
    *device = &whole_device;
  } else if (std::strcmp(uuid, "MIG-part") == 0) {
    *device = &part_of_a_device;
  } else {
    return not_found;
  }
  return success;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const unsigned long long total = device == &whole_device ? 80ull << 30 : 10ull << 30;
  *memory = {.total = total, .free = total - (6ull << 30), .used = 6ull << 30};
  return success;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (device != &whole_device) return not_supported;
  *millijoules = 1234567;
  return success;
}

int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (device != &whole_device) return not_supported;
  *rates = {.gpu = 40, .memory = 7};
  return success;
}
}
