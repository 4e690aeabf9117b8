#pragma once

#include <hortator/bigmodel/big_models.hpp>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// The rule of infer_auto_device_map(): see there.
DeviceMap infer_device_map(const ModuleTree& tree, const DeviceMapOptions& options);

/// Entries of which all siblings have the same place become one, upwards from `below`.
DeviceMap cleaned(DeviceMap map, const std::string& below = "");

/// The place of the tensor or module `name`: its own, or that of the nearest module around it. Null: it has none.
const Place* place_in(const DeviceMap& map, const std::string& name);

/// Tensors that have no place in the map, and names in it that the tree does not have.
struct MapFaults {
  std::vector<std::string> without_place = {};
  std::vector<std::string> unknown = {};
};
MapFaults faults_of(const DeviceMap& map, const ModuleTree& tree);

}  // namespace hortator::bigmodel
