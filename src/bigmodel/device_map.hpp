#pragma once

#include <hortator/bigmodel/big_models.hpp>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// Implements infer_auto_device_map(); see there.
DeviceMap infer_device_map(const ModuleTree& tree, const DeviceMapOptions& options);

/// Merges entries of siblings with the same placement into one, for all modules below `below`.
DeviceMap cleaned(DeviceMap map, const std::string& below = "");

/// The placement of the tensor or module `name`: its own, or that of the nearest enclosing module. Null if none has
/// one.
const DevicePlacement* placement_in(const DeviceMap& map, const std::string& name);

/// Tensors without a placement in the map, and names in the map that are not in the tree.
struct MapFaults {
  std::vector<std::string> unplaced = {};
  std::vector<std::string> unknown = {};
};
MapFaults faults_of(const DeviceMap& map, const ModuleTree& tree);

}  // namespace hortator::bigmodel
