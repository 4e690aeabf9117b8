#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>
#include <ostream>

#include "core/text/text.hpp"

namespace hortator {

DevicePlacement DevicePlacement::cuda(int index) {
  if (index >= 0) return {Medium::cuda, index};
  throw UsageError({.what = text::concat("Invalid CUDA device ", index), .hint = "devices are numbered from 0"});
}

DevicePlacement DevicePlacement::parse(std::string_view name) {
  constexpr std::string_view prefix = "cuda:";
  if (name == "cpu") return cpu();
  if (name == "disk") return disk();
  const auto number = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  constexpr long long max_devices = 1 << 16;
  long long index = -1;
  if (text::parse_integer(number, index) && 0 <= index && index < max_devices) return cuda(static_cast<int>(index));
  throw UsageError({.what = text::concat("Invalid device placement ", text::quote(name)),
                    .why =
                        "parts of a model lie on CUDA devices, in the CPU's memory or on disk; other kinds of devices "
                        "(tpu, mps, xpu, ...) are not supported on purpose",
                    .hint = "use the number of a CUDA device, cpu or disk"});
}

std::ostream& operator<<(std::ostream& out, const DevicePlacement& placement) {
  if (placement.is_cuda()) return out << "cuda:" << placement.index_;
  return out << (placement.is_cpu() ? "cpu" : "disk");
}

}  // namespace hortator
