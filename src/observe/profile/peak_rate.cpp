#include "observe/profile/peak_rate.hpp"

#include <algorithm>
#include <array>

namespace hortator::observe {
namespace {

struct Peak {
  std::string_view device;  ///< how its name begins
  double flops;
};

// NVIDIA's data sheets, https://www.nvidia.com/en-us/data-center/: half of the rates "with sparsity". The names are
// those that the driver reports; the first match counts.
constexpr std::array peaks = {
    Peak{"Tesla V100-PCIE", 112e12},  //
    Peak{"Tesla V100-SXM2", 125e12},  //
    Peak{"Tesla T4", 65e12},          //
    Peak{"NVIDIA A100", 312e12},      //
    Peak{"NVIDIA A30", 165e12},       //
    Peak{"NVIDIA A40", 149.7e12},     //
    Peak{"NVIDIA L40S", 362e12},      //
    Peak{"NVIDIA H100 PCIe", 756e12}, Peak{"NVIDIA H100 NVL", 835e12}, Peak{"NVIDIA H100 80GB HBM3", 989e12},
    Peak{"NVIDIA H200 NVL", 835e12},  Peak{"NVIDIA H200", 989e12},     Peak{"NVIDIA GH200", 990e12},
};

}  // namespace

std::optional<double> peak_flops(std::string_view device) {
  if (device.find(" MIG ") != std::string_view::npos) return {};  // a slice of a device; data sheets do not list it
  const auto* found =
      std::find_if(peaks.begin(), peaks.end(), [&](const Peak& peak) { return device.starts_with(peak.device); });
  return found == peaks.end() ? std::nullopt : std::optional(found->flops);
}

}  // namespace hortator::observe
