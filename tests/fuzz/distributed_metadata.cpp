// Fuzzes the reader of torch.distributed.checkpoint's metadata: any bytes are refused, or describe tensors that their
// parts fill.
#include <cstdint>

#include "formats/torch/distributed/metadata.hpp"
#include "formats/torch/pickle/machine.hpp"
#include "target.hpp"

using namespace hortator::formats;

namespace {

void require_filled(const DistributedTensor& tensor) {
  std::int64_t elements = 0;
  for (const auto& part : tensor.parts) {
    elements += part.elements();
    for (std::size_t i = 0; i < part.sizes.size(); ++i) {
      if (part.offsets[i] < 0 || part.offsets[i] + part.sizes[i] > tensor.spec.shape[i]) __builtin_trap();
    }
    if (part.place.file.empty() || part.place.file.find('/') != std::string::npos) __builtin_trap();
  }
  if (elements != tensor.spec.elements()) __builtin_trap();
}

}  // namespace

FUZZ_TARGET(distributed_metadata) {
  try {
    const auto metadata = parse_distributed_metadata({reinterpret_cast<const char*>(data), size});
    for (const auto& tensor : metadata.tensors) require_filled(tensor);
  } catch (const PickleFault&) {
  }
  return 0;
}
