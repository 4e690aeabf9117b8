#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

/// The table of back ends. A new back end needs a row in registry.cpp, its sources, and their names in CMakeLists.txt.
namespace hortator::comm {

/// What decides which back end carries tensors.
struct BackendRequest {
  std::optional<std::string> requested = {};  ///< HORTATOR_COMMUNICATOR
  c10::DeviceType tensors = c10::kCPU;        ///< the type of device that the tensors are on
  c10::DeviceType accelerator = c10::kCPU;    ///< for which this library was built; kCPU: for none
  bool sees_devices = false;                  ///< whether this rank sees accelerators
  bool shares_devices = false;                ///< HORTATOR_SHARE_DEVICES: ranks may share a device, which NCCL refuses
  int ranks = 1;
  int largest_node = 1;  ///< ranks of the node that has most
};

/// A back end. Decorators are not in the table.
struct Backend {
  /// Makes a communicator over the ranks of `world` for tensors on `device`. The back end uses MPI communicators of its
  /// own. Throws where it cannot work; see make_communicator() for the time limit. @collective
  using Make = std::unique_ptr<Communicator>(const mpi::Communicator& world, c10::Device device,
                                             std::chrono::milliseconds patience);

  std::string_view name;                   ///< what Communicator::name() returns, and users select it by
  Traits traits;                           ///< what Communicator::traits() returns
  bool (*suits)(const BackendRequest&);    ///< whether it is a good choice where nothing is requested
  void (*require)(const BackendRequest&);  ///< throws the reason why a user's request for it cannot be met; may be null
  Make* make;
};

/// All back ends. If several suit a request, the last is preferred.
std::span<const Backend> backends();

/// The back end of that name, or null.
const Backend* find_backend(std::string_view name);

std::vector<std::string> backend_names();

}  // namespace hortator::comm
