#include "machine/device/device.hpp"

#include <array>

namespace hortator::machine {
namespace {

constexpr std::array<DeviceKind, 1> kinds = {{
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
}};

}  // namespace

std::span<const DeviceKind> known_kinds() { return kinds; }

const DeviceKind* kind_of(c10::Device device) {
  const auto* const kind = accelerator_kind();
  return kind != nullptr && kind->type == device.type() ? kind : nullptr;
}

}  // namespace hortator::machine
