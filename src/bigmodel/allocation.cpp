#include <algorithm>
#include <hortator/bigmodel/big_models.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bigmodel/device_map.hpp"
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

namespace {

constexpr auto unlimited = std::numeric_limits<Bytes>::infinity();

std::vector<ModelPart> parts_below(const ModelPart& part) { return parts_of(*part.node, part.name); }

}  // namespace

Allocation::Allocation(const ModuleTree& tree, const DeviceMapOptions& options)
    : options_(options),
      sizes_(tree, options.sizes),
      no_split_(options.no_split_module_classes),
      ties_(tied_groups(tree)),
      remaining_(parts_of(tree.root, "")) {
  for (const auto& [placement, limit] : options.max_memory) {
    if (placement.is_disk()) continue;
    const bool is_first_device = placement.is_cuda() && devices_.empty();
    devices_.push_back(
        {.placement = placement, .limit = limit, .reserves_layer = is_first_device || placement.is_cpu()});
  }
  devices_.push_back({.placement = DevicePlacement::disk(), .limit = unlimited});
  largest_ = largest_layer(remaining_, sizes_, no_split_);
}

DeviceMap Allocation::run() {
  while (!remaining_.empty()) {
    const auto part = remaining_.front();
    remaining_.erase(remaining_.begin());
    remove_from_largest(part);
    place_part(part);
  }
  return std::move(map_);
}

void Allocation::place_part(const ModelPart& part) {
  auto& device = devices_[current_];
  const auto tied = parts_tied_to(part, remaining_);
  const auto own_bytes = sizes_.of(part.name);
  const auto all_bytes = own_bytes + tied.bytes;
  const auto reserved = device.reserves_layer ? largest_.bytes : 0;
  const auto limit = device.limit - reserved;

  if (device.used + all_bytes <= limit) return assign(part, tied, all_bytes);
  if (!tied.names.empty() && device.used + own_bytes <= limit && split_one_of(tied)) return put_back(part);
  if (device.used + own_bytes >= limit && no_split_.can_split(part)) return split(part);
  if (device.used == 0 && options_.fallback_allocation && take_later_part_first(part, all_bytes)) return;
  device.used += reserved;
  ++current_;
  put_back(part);
}

void Allocation::assign(const ModelPart& part, const TiedParts& tied, Bytes bytes) {
  auto& device = devices_[current_];
  device.used += bytes;
  map_.insert_or_assign(part.name, device.placement);
  for (const auto& name : tied.names) {
    remaining_.erase(find_remaining(name));
    map_.insert_or_assign(name, device.placement);
  }
}

// Splits a tied module, so that a smaller tied part may fit.
bool Allocation::split_one_of(const TiedParts& tied) {
  for (const auto& name : tied.names) {
    const auto partner = find_remaining(name);
    if (!no_split_.can_split(*partner)) continue;
    replace_by_its_parts(partner);
    find_largest();
    return true;
  }
  return false;
}

void Allocation::split(const ModelPart& part) {
  put_back(part);
  replace_by_its_parts(remaining_.begin());
  find_largest();
}

bool Allocation::take_later_part_first(const ModelPart& part, Bytes bytes) {
  const auto limit = devices_[current_].limit - std::max(largest_.bytes, bytes);
  const auto found = find_that_fits(limit, remaining_);
  if (!found) return false;
  const auto& first = *found;
  // Split the modules that contain it, so that it is a remaining part itself.
  for (auto dot = first.name.find('.'); dot != std::string::npos; dot = first.name.find('.', dot + 1)) {
    const auto around = find_remaining(first.name.substr(0, dot));
    if (around != remaining_.end()) replace_by_its_parts(around);
  }
  remaining_.erase(find_remaining(first.name));
  put_back(part);
  put_back(first);
  return true;
}

// The first part that fits, in the model's order; a module comes before its parts.
std::optional<ModelPart> Allocation::find_that_fits(Bytes limit, std::vector<ModelPart> search) const {
  while (!search.empty()) {
    const auto part = search.front();
    search.erase(search.begin());
    const auto tied = parts_tied_to(part, search);
    if (tied.complete && sizes_.of(part.name) + tied.bytes <= limit) return part;
    if (!no_split_.can_split(part)) continue;
    const auto below = parts_below(part);
    search.insert(search.begin(), below.begin(), below.end());
  }
  return {};
}

// Transitive: tied parts may be tied to further ones. A tied parameter counts under its first name only, so that sizes
// add up.
Allocation::TiedParts Allocation::parts_tied_to(const ModelPart& part, const std::vector<ModelPart>& among) const {
  TiedParts tied;
  std::vector<std::string> together = {part.name};
  const auto is_inside = [&](const std::string& name) {
    return std::ranges::any_of(together, [&](const auto& whole) { return is_within(name, whole); });
  };
  const auto join = [&](const std::string& name) {
    const auto partner =
        std::ranges::find_if(among, [&](const ModelPart& other) { return is_within(name, other.name); });
    if (partner == among.end()) {
      tied.complete = tied.complete && placement_in(map_, name) != nullptr;
      return;
    }
    together.push_back(partner->name);
    tied.names.push_back(partner->name);
    tied.bytes += sizes_.of(partner->name);
  };
  for (std::size_t joined = 0; joined != together.size();) {
    joined = together.size();
    for (const auto& group : ties_) {
      if (std::ranges::none_of(group, is_inside)) continue;
      for (const auto& name : group) {
        if (!is_inside(name)) join(name);
      }
    }
  }
  return tied;
}

std::vector<ModelPart>::iterator Allocation::find_remaining(const std::string& name) {
  return std::ranges::find_if(remaining_, [&](const ModelPart& part) { return part.name == name; });
}

void Allocation::replace_by_its_parts(std::vector<ModelPart>::iterator part) {
  const auto below = parts_below(*part);
  remaining_.insert(remaining_.erase(part), below.begin(), below.end());
}

void Allocation::remove_from_largest(const ModelPart& part) {
  std::erase_if(largest_.names, [&](const std::string& name) { return is_within(name, part.name); });
  if (largest_.names.empty()) find_largest();
}

// A single tensor does not count as a layer.
void Allocation::find_largest() {
  std::vector<ModelPart> modules;
  std::ranges::copy_if(remaining_, std::back_inserter(modules),
                       [](const ModelPart& part) { return part.node != nullptr; });
  largest_ = largest_layer(modules, sizes_, no_split_);
}

DeviceMap infer_device_map(const ModuleTree& tree, const DeviceMapOptions& options) {
  auto map = Allocation(tree, options).run();
  return options.clean_result ? cleaned(std::move(map)) : map;
}

}  // namespace hortator::bigmodel
