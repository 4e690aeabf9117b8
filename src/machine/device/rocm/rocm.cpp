#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"

namespace hortator::machine {
namespace {

void check(c10::Device device, hipError_t code) {
  if (code != hipSuccess) throw_no_answer(device, hipGetErrorString(code));
}

// The driver's identifiers are 16 characters, those that rocm-smi prints after "GPU-".
std::string uuid_of(c10::Device device) {
  hipUUID uuid{};
  check(device, hipDeviceGetUuid(&uuid, device.index()));
  return text::concat("GPU-", std::string(std::begin(uuid.bytes), std::end(uuid.bytes)));
}

std::string pci_address_of(c10::Device device) {
  std::array<char, 32> address{};
  check(device, hipDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device.index()));
  std::string text(address.data());
  std::ranges::transform(text, text.begin(), [](unsigned char digit) { return std::tolower(digit); });
  return text;
}

std::string name_of(c10::Device device) {
  std::array<char, 256> name{};
  check(device, hipDeviceGetName(name.data(), static_cast<int>(name.size()), device.index()));
  return name.data();
}

}  // namespace

const DeviceKind* accelerator_kind() {
  static const auto* const kind = &*std::ranges::find(known_kinds(), "rocm", &DeviceKind::name);
  return kind;
}

DeviceIdentity identify(c10::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, DeviceIdentity> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(device.index()); found != known.end()) return found->second;
  DeviceIdentity identity{.name = name_of(device), .uuid = uuid_of(device), .pci_address = pci_address_of(device)};
  return known.emplace(device.index(), std::move(identity)).first->second;
}

}  // namespace hortator::machine
