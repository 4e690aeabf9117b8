#pragma once

#include <hortator/bigmodel/big_models.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bigmodel/no_split_classes.hpp"

namespace hortator::bigmodel {

/// Assigns the parts of a model to placements. Fills one placement after the other, and never returns to an earlier
/// one.
class Allocation {
 public:
  Allocation(const ModuleTree& tree, const DeviceMapOptions& options);

  DeviceMap run();

 private:
  struct Device {
    DevicePlacement placement;
    Bytes limit = 0;
    bool reserves_layer = false;  ///< for the largest layer still to be placed: offloaded parts are computed here
    Bytes used = 0;
  };
  /// Parts with parameters that are tied to those of another part.
  struct TiedParts {
    std::vector<std::string> names = {};
    Bytes bytes = 0;
    bool complete = true;  ///< all tied tensors are in these parts, or placed already
  };

  void place_part(const ModelPart& part);
  void assign(const ModelPart& part, const TiedParts& tied, Bytes bytes);
  void put_back(const ModelPart& part) { remaining_.insert(remaining_.begin(), part); }
  bool split_one_of(const TiedParts& tied);
  void split(const ModelPart& part);
  bool take_later_part_first(const ModelPart& part, Bytes bytes);

  TiedParts parts_tied_to(const ModelPart& part, const std::vector<ModelPart>& among) const;
  std::optional<ModelPart> find_that_fits(Bytes limit, std::vector<ModelPart> search) const;
  std::vector<ModelPart>::iterator find_remaining(const std::string& name);
  void replace_by_its_parts(std::vector<ModelPart>::iterator part);
  void remove_from_largest(const ModelPart& part);
  void find_largest();

  const DeviceMapOptions& options_;
  ModuleSizes sizes_;
  NoSplitClasses no_split_;
  TiedGroups ties_;
  std::vector<Device> devices_;
  std::size_t current_ = 0;
  std::vector<ModelPart> remaining_;  ///< not placed yet, in the model's order
  LargestLayer largest_;              ///< of the remaining parts
  DeviceMap map_;
};

}  // namespace hortator::bigmodel
