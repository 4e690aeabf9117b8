#pragma once

#include <optional>
#include <string_view>

#include "formats/torch/pickle/stack.hpp"

/// Interprets the calls of PyTorch's functions in pickles, without calling any.
namespace hortator::formats::pickle {

/// The results of torch._utils._rebuild_tensor_v2 and _v3. Throw PickleFault for arguments that these would refuse, and
/// for tensors that do not lie within their storage.
PickledTensor rebuild_tensor(const Tuple& arguments);
PickledTensor rebuild_tensor_of_type(const Tuple& arguments);
/// torch._utils._rebuild_parameter
PickledTensor rebuild_parameter(const Tuple& arguments);

/// The storage of a persistent identifier of torch.save: ("storage", class, name, device, size).
Storage storage_of(const Tuple& identifier);

}  // namespace hortator::formats::pickle
