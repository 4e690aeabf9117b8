// A stand-in for Intel's Level Zero: an integrated device, and two others. The second one has two tiles, each with
// memory and engines of its own. Its engines compute a quarter of the time between two looks.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int invalid = 0x78000004;

// The structs of ze_api.h and zes_api.h.
struct Header {
  std::uint32_t stype;
  void* next;
};
struct DeviceProperties {
  Header header;
  std::uint32_t type;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t flags;
  std::uint32_t subdevice_id;
  std::uint32_t core_clock_rate;
  std::uint64_t max_memory_allocation;
  std::uint32_t max_hardware_contexts;
  std::uint32_t max_command_queue_priority;
  std::uint32_t threads_per_eu;
  std::uint32_t simd_width;
  std::uint32_t eus_per_subslice;
  std::uint32_t subslices_per_slice;
  std::uint32_t slices;
  std::uint64_t timer_resolution;
  std::uint32_t timestamp_valid_bits;
  std::uint32_t kernel_timestamp_valid_bits;
  std::uint8_t uuid[16];
  char name[256];
};
struct PciProperties {
  Header header;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t function;
  std::int32_t generation;
  std::int32_t width;
  std::int64_t bandwidth;
};
struct EngineProperties {
  Header header;
  std::uint32_t type;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice_id;
};
struct EngineStats {
  std::uint64_t active_time;
  std::uint64_t timestamp;
};
struct MemoryState {
  Header header;
  std::uint32_t health;
  std::uint64_t free;
  std::uint64_t size;
};

struct Tile {
  EngineStats stats = {};
};
struct Device {
  int number;
  int tiles;
  Tile tile[2] = {};
  Tile media = {};
};

int driver;
Device all[] = {{.number = 0, .tiles = 1}, {.number = 1, .tiles = 1}, {.number = 2, .tiles = 2}};

template <typename Place>
int list(std::uint32_t* count, void** handles, std::uint32_t available, Place place) {
  if (handles == nullptr) return *count = available, success;
  if (*count > available) *count = available;
  for (std::uint32_t i = 0; i < *count; ++i) handles[i] = place(i);
  return success;
}

int place_on_bus(void* device, PciProperties* pci) {
  pci->domain = 0;
  pci->bus = 0x4d + static_cast<std::uint32_t>(static_cast<Device*>(device)->number);
  pci->device = 0;
  pci->function = 0;
  return success;
}

}  // namespace

extern "C" {

int zeInit(std::uint32_t flags) { return flags == 1 ? success : invalid; }
int zesInit(std::uint32_t flags) { return flags == 0 ? success : invalid; }

int zeDriverGet(std::uint32_t* count, void** drivers) {
  return list(count, drivers, 1, [](std::uint32_t) { return &driver; });
}
int zesDriverGet(std::uint32_t* count, void** drivers) { return zeDriverGet(count, drivers); }

int zeDeviceGet(void* of, std::uint32_t* count, void** devices) {
  if (of != &driver) return invalid;
  return list(count, devices, 3, [](std::uint32_t i) { return &all[i]; });
}
int zesDeviceGet(void* of, std::uint32_t* count, void** devices) { return zeDeviceGet(of, count, devices); }

int zeDeviceGetProperties(void* device, DeviceProperties* properties) {
  if (properties->header.stype != 0x3) return invalid;
  const int number = static_cast<Device*>(device)->number;
  properties->type = 1;
  properties->flags = number == 0 ? 1 : 0;
  for (int i = 0; i < 16; ++i) properties->uuid[i] = static_cast<std::uint8_t>(16 * number + i);
  std::snprintf(properties->name, sizeof properties->name, "Fictitious GPU %d", number);
  return success;
}

int zeDevicePciGetPropertiesExt(void* device, PciProperties* pci) {
  return pci->header.stype == 0x10008 ? place_on_bus(device, pci) : invalid;
}
int zesDevicePciGetProperties(void* device, PciProperties* pci) {
  return pci->header.stype == 0x2 ? place_on_bus(device, pci) : invalid;
}

int zesDeviceEnumMemoryModules(void* device, std::uint32_t* count, void** memories) {
  auto* const of = static_cast<Device*>(device);
  return list(count, memories, static_cast<std::uint32_t>(of->tiles), [&](std::uint32_t i) { return &of->tile[i]; });
}

int zesMemoryGetState(void* /*memory*/, MemoryState* state) {
  if (state->header.stype != 0x1e) return invalid;
  state->size = std::uint64_t{64} << 30;
  state->free = std::uint64_t{60} << 30;
  return success;
}

int zesDeviceEnumEngineGroups(void* device, std::uint32_t* count, void** engines) {
  auto* const of = static_cast<Device*>(device);
  const auto tiles = static_cast<std::uint32_t>(of->tiles);
  return list(count, engines, tiles + 1, [&](std::uint32_t i) { return i < tiles ? &of->tile[i] : &of->media; });
}

int zesEngineGetProperties(void* engine, EngineProperties* properties) {
  if (properties->header.stype != 0x5) return invalid;
  properties->type = 0;
  for (const auto& device : all)
    if (engine == &device.media) properties->type = 2;
  return success;
}

int zesEngineGetActivity(void* engine, EngineStats* stats) {
  auto& own = static_cast<Tile*>(engine)->stats;
  for (const auto& device : all)
    if (engine == &device.media) own.active_time += 1'000'000;  // not to be counted
  own.active_time += 25'000;
  own.timestamp += 100'000;
  *stats = own;
  return success;
}
}
