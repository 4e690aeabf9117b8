#include "paging/stores/scratch_tensor.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <memory>

#include "formats/file/raw_file.hpp"
#include "formats/file/scratch_memory.hpp"

namespace hortator::paging {

at::Tensor zeros_in_scratch(const std::filesystem::path& folder, std::int64_t elements, at::ScalarType type) {
  formats::make_folder(folder);
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * c10::elementSize(type);
  auto memory = std::make_shared<formats::ScratchMemory>(folder, bytes);
  auto* data = memory->data();
  return at::from_blob(
      data, {elements}, [memory = std::move(memory)](void*) mutable { memory.reset(); },
      at::TensorOptions().dtype(type));
}

}  // namespace hortator::paging
