#pragma once

#include <c10/core/DeviceType.h>

namespace hortator::parallel {

/// From now on torch::save() throws UsageError for divided tensors on devices of this type: it sees one rank only, and
/// would write that rank's part as if it were the whole tensor.
void refuse_pickling(c10::DeviceType type);

}  // namespace hortator::parallel
