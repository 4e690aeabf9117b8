#pragma once

#include <hortator/bigmodel/big_models.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bigmodel/parts.hpp"

namespace hortator::bigmodel {

/// One walk through a model that fills places one after the other, and never goes back to an earlier one.
class Allocation {
 public:
  Allocation(const ModuleTree& tree, const DeviceMapOptions& options);

  DeviceMap run();

 private:
  struct Device {
    Place place;
    Bytes limit = 0;
    bool keeps_room = false;  ///< for the largest layer to come: what is offloaded is brought here to work
    Bytes used = 0;
  };
  /// Parts with parameters that are tied to some of another part.
  struct Partners {
    std::vector<std::string> names = {};
    Bytes bytes = 0;
    bool complete = true;  ///< all that is tied is among these, or has its place
  };

  void place(const Part& part);
  void put(const Part& part, const Partners& partners, Bytes bytes);
  void put_back(const Part& part) { rest_.insert(rest_.begin(), part); }
  bool split_one_of(const Partners& partners);
  void split(const Part& part);
  bool take_later_part_first(const Part& part, Bytes bytes);

  Partners partners_of(const Part& part, const std::vector<Part>& among) const;
  std::optional<Part> find_that_fits(Bytes limit, std::vector<Part> search) const;
  std::vector<Part>::iterator find_rest(const std::string& name);
  void replace_by_its_parts(std::vector<Part>::iterator part);
  void leave_largest(const Part& part);
  void find_largest();

  const DeviceMapOptions& options_;
  ModuleSizes sizes_;
  WholeClasses whole_;
  TiedGroups ties_;
  std::vector<Device> devices_;
  std::size_t current_ = 0;
  std::vector<Part> rest_;  ///< what has no place yet, in the model's order
  LargestLayer largest_;    ///< of the rest
  DeviceMap map_;
};

}  // namespace hortator::bigmodel
