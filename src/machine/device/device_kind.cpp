#include "machine/device/device.hpp"

#include <array>

namespace hortator::machine {
namespace {

constexpr std::array<DeviceKind, 2> kinds = {{
    {.type = c10::kCUDA,
     .name = "cuda",
     .title = "CUDA",
     .build_option = "HORTATOR_WITH_CUDA",
     .visibility = "CUDA_VISIBLE_DEVICES",
     .tool = "nvidia-smi",
     .file_prefix = "nvidia",
     .activity = torch::profiler::impl::ActivityType::CUDA,
     .monitor = "libnvidia-ml.so.1",
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
     .has_fused_kernels = true},
}};

}  // namespace

std::span<const DeviceKind> known_kinds() { return kinds; }

const DeviceKind* kind_of(c10::Device device) {
  const auto* const kind = accelerator_kind();
  return kind != nullptr && kind->type == device.type() ? kind : nullptr;
}

}  // namespace hortator::machine
