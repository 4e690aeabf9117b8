#include <array>

#include "machine/device/device.hpp"
#include "machine/device/monitor.hpp"

namespace hortator::machine {
namespace {

constexpr MonitorLibrary nvml = {.file = "libnvidia-ml.so.1", .open = open_nvml};
constexpr MonitorLibrary amdsmi = {.file = "libamd_smi.so", .open = open_amdsmi};
constexpr MonitorLibrary level_zero = {.file = "libze_loader.so.1", .open = open_level_zero};

constexpr std::array<DeviceKind, 3> kinds = {{
    {.type = c10::kCUDA,
     .name = "cuda",
     .title = "CUDA",
     .build_option = "HORTATOR_WITH_CUDA",
     .visibility = "CUDA_VISIBLE_DEVICES",
     .tool = "nvidia-smi",
     .file_prefix = "nvidia",
     .activity = torch::profiler::impl::ActivityType::CUDA,
     .monitor = &nvml,
     .records_steps = true,
     .has_fused_kernels = true},
    // LibTorch calls ROCm's devices "cuda" as well.
    {.type = c10::kCUDA,
     .name = "rocm",
     .title = "ROCm",
     .build_option = "HORTATOR_WITH_ROCM",
     .visibility = "HIP_VISIBLE_DEVICES",
     .tool = "rocm-smi",
     .file_prefix = "dri/renderD",
     .activity = torch::profiler::impl::ActivityType::CUDA,
     .monitor = &amdsmi,
     .has_fused_kernels = true},
    {.type = c10::kXPU,
     .name = "xpu",
     .title = "XPU",
     .build_option = "HORTATOR_WITH_XPU",
     .visibility = "ZE_AFFINITY_MASK",
     .tool = "xpu-smi",
     .file_prefix = "dri/renderD",
     .activity = torch::profiler::impl::ActivityType::XPU,
     .monitor = &level_zero},
}};

}  // namespace

std::span<const DeviceKind> known_kinds() { return kinds; }

const DeviceKind* kind_of(c10::Device device) {
  const auto* const kind = accelerator_kind();
  return kind != nullptr && kind->type == device.type() ? kind : nullptr;
}

}  // namespace hortator::machine
