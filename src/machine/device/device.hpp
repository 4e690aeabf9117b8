#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::machine {

struct MonitorLibrary;

/// A kind of accelerator. Callers ask what its devices can do; they do not compare types. A new kind needs a row in
/// device_kind.cpp and the functions that device/cuda/ defines for CUDA.
struct DeviceKind {
  c10::DeviceType type;
  std::string_view name;          ///< as users write it: "cuda" in HORTATOR_DEVICE=cuda
  std::string_view title;         ///< in messages: "CUDA"
  std::string_view build_option;  ///< of CMake: "HORTATOR_WITH_CUDA"
  std::string_view visibility;    ///< the variable that limits what a process sees: "CUDA_VISIBLE_DEVICES"
  std::string_view tool;          ///< the vendor's command that lists devices: "nvidia-smi"
  std::string_view file_prefix;   ///< of the device files in /dev, before a number: "nvidia"
  torch::profiler::impl::ActivityType activity = torch::profiler::impl::ActivityType::PrivateUse1;  ///< of its profile
  const MonitorLibrary* monitor = nullptr;  ///< null: devices are not monitored
  bool records_steps = false;               ///< whether a Graph can be recorded
  bool has_fused_kernels = false;           ///< whether LibTorch has the optimizers' fused kernels
};

/// All kinds for which Hortator can be built, whether or not this build is for them.
std::span<const DeviceKind> known_kinds();

/// The kind for which this library was built; null: the CPU only. At most one, as in LibTorch.
const DeviceKind* accelerator_kind();

/// The kind of `device`; null for the CPU and for types of device for which this library was not built.
const DeviceKind* kind_of(c10::Device device);

struct DeviceIdentity {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  /// Identifies the hardware as the vendor's tools do, independent of the order and number of visible devices:
  /// "GPU-01234567-89ab-...".
  std::string uuid;
  std::string pci_address;  ///< as the kernel writes it: "0000:3b:00.0"
};

/// Throws Error when the device does not answer, and in a build for CPUs only.
DeviceIdentity identify(c10::Device device);

/// The devices of accelerator_kind() that this process sees. None in a build for CPUs only and when the driver is
/// missing, too old or broken: never throws.
std::vector<c10::Device> visible_devices();
std::vector<std::string> visible_uuids();

/// Whether this process has used any of them.
bool is_in_use();

std::size_t free_memory(c10::Device device);  ///< bytes that no process uses

/// Makes `device` the one of the calling thread.
void set_current(c10::Device device);

/// The files of the node's accelerators, independent of what this process sees.
struct DeviceFiles {
  int all = 0;
  int openable = 0;  ///< fewer if the scheduler has put this process into a device cgroup
};
DeviceFiles device_files(const std::filesystem::path& folder = "/dev");

/// Throws the error of a device that does not answer, for the reason that its driver gives.
[[noreturn]] void throw_no_answer(c10::Device device, std::string_view reason);

}  // namespace hortator::machine
