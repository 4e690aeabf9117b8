#include "weights/deepspeed/zero_states.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "weights/deepspeed/zero_reading.hpp"

namespace hortator::weights {

ZeroStates::ZeroStates(const std::filesystem::path& folder) : folder_(folder) {
  auto found = read_zero_folder(list_zero_folder(folder), files_);
  names_ = std::move(found.names);
  tensors_ = std::move(found.tensors);
  shared_ = std::move(found.shared);
  parameters_ = std::move(found.parameters);
  optimizer_ = std::move(found.optimizer);
}

const std::string& ZeroStates::first_name(const std::string& name) const {
  const auto shared = shared_.find(name);
  return shared != shared_.end() ? shared->second : name;
}

const StoredTensor& ZeroStates::tensor(const std::string& name) const {
  const auto found = tensors_.find(first_name(name));
  if (found != tensors_.end()) return found->second;
  throw UsageError(
      {.what = text::concat(folder_, " has no tensor ", text::quote(name)), .hint = text::suggestion(name, names_)});
}

void ZeroStates::read(const StoredTensor& tensor, core::Range elements, std::byte* to) const {
  const auto element = tensor.spec.element_bytes();
  for (const auto& slice : tensor.slices) {
    const core::Range here{std::max(slice.elements.begin, elements.begin), std::min(slice.elements.end, elements.end)};
    if (here.size() <= 0) continue;
    const auto skipped = static_cast<std::uint64_t>((here.begin - slice.elements.begin) * element);
    files_.get(slice.file)
        ->read_at(slice.offset + skipped, to + (here.begin - elements.begin) * element,
                  static_cast<std::size_t>(here.size() * element));
  }
}

at::Tensor ZeroStates::whole(const StoredTensor& tensor) const {
  auto values = at::empty(tensor.spec.shape, tensor.spec.type);
  if (values.numel() > 0) read(tensor, {0, values.numel()}, static_cast<std::byte*>(values.mutable_data_ptr()));
  return values;
}

}  // namespace hortator::weights
