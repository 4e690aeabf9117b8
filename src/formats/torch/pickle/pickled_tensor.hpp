#pragma once

#include <optional>
#include <string_view>

#include "formats/torch/pickle/objects.hpp"

/// Makes what calls of PyTorch's functions in pickles would make, without calling any.
namespace hortator::formats::pickle {

/// torch._utils._rebuild_tensor_v2 and _v3, by their arguments. PickleFault for what they would not take, or what does
/// not lie within its storage.
PickledTensor rebuild_tensor(const Tuple& arguments);
PickledTensor rebuild_tensor_of_type(const Tuple& arguments);
/// torch._utils._rebuild_parameter
PickledTensor rebuild_parameter(const Tuple& arguments);

/// What a persistent identifier of torch.save means: ("storage", class, name, device, size).
Storage storage_of(const Tuple& identifier);

}  // namespace hortator::formats::pickle
