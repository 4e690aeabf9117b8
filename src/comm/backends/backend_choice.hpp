#pragma once

#include "comm/backends/registry.hpp"

namespace hortator::comm {

struct BackendChoice {
  const Backend* backend = nullptr;  ///< never null in a result
  bool is_staged = false;  ///< it carries CPU tensors: a StagedCommunicator around it carries those of devices
};

/// The requested back end where it carries such tensors, else the last one of the table that carries them and suits.
/// Tensors of devices that ranks may share, or that no back end carries, are staged. One rank always gets `self`.
/// Throws when the name is unknown or the requested back end cannot be used.
BackendChoice choose_backend(const BackendRequest& request);

}  // namespace hortator::comm
