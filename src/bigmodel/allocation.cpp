#include "bigmodel/allocation.hpp"

#include <algorithm>
#include <limits>

#include "bigmodel/device_map.hpp"

namespace hortator::bigmodel {
namespace {

constexpr auto unlimited = std::numeric_limits<Bytes>::infinity();

std::vector<Part> parts_below(const Part& part) { return parts_of(*part.node, part.name); }

}  // namespace

Allocation::Allocation(const ModuleTree& tree, const DeviceMapOptions& options)
    : options_(options),
      sizes_(tree, options.sizes),
      whole_(options.no_split_module_classes),
      ties_(tied_groups(tree)),
      rest_(parts_of(tree.root, "")) {
  for (const auto& [place, limit] : options.max_memory) {
    if (place.is_disk()) continue;
    const bool is_first_device = place.is_cuda() && devices_.empty();
    devices_.push_back({.place = place, .limit = limit, .keeps_room = is_first_device || place.is_cpu()});
  }
  devices_.push_back({.place = Place::disk(), .limit = unlimited});
  largest_ = largest_layer(rest_, sizes_, whole_);
}

DeviceMap Allocation::run() {
  while (!rest_.empty()) {
    const auto part = rest_.front();
    rest_.erase(rest_.begin());
    leave_largest(part);
    place(part);
  }
  return std::move(map_);
}

void Allocation::place(const Part& part) {
  auto& device = devices_[current_];
  const auto partners = partners_of(part, rest_);
  const auto alone = sizes_.of(part.name);
  const auto together = alone + partners.bytes;
  const auto reserved = device.keeps_room ? largest_.bytes : 0;
  const auto limit = device.limit - reserved;

  if (device.used + together <= limit) return put(part, partners, together);
  if (!partners.names.empty() && device.used + alone <= limit && split_one_of(partners)) return put_back(part);
  if (device.used + alone >= limit && whole_.splits(part)) return split(part);
  if (device.used == 0 && options_.fallback_allocation && take_later_part_first(part, together)) return;
  device.used += reserved;
  ++current_;
  put_back(part);
}

void Allocation::put(const Part& part, const Partners& partners, Bytes bytes) {
  auto& device = devices_[current_];
  device.used += bytes;
  map_.insert_or_assign(part.name, device.place);
  for (const auto& name : partners.names) {
    rest_.erase(find_rest(name));
    map_.insert_or_assign(name, device.place);
  }
}

// A smaller partner may fit.
bool Allocation::split_one_of(const Partners& partners) {
  for (const auto& name : partners.names) {
    const auto partner = find_rest(name);
    if (!whole_.splits(*partner)) continue;
    replace_by_its_parts(partner);
    find_largest();
    return true;
  }
  return false;
}

void Allocation::split(const Part& part) {
  put_back(part);
  replace_by_its_parts(rest_.begin());
  find_largest();
}

bool Allocation::take_later_part_first(const Part& part, Bytes bytes) {
  const auto limit = devices_[current_].limit - std::max(largest_.bytes, bytes);
  const auto found = find_that_fits(limit, rest_);
  if (!found) return false;
  const auto& first = *found;
  // Modules around it are split, so that it stands in the rest by itself.
  for (auto dot = first.name.find('.'); dot != std::string::npos; dot = first.name.find('.', dot + 1)) {
    const auto around = find_rest(first.name.substr(0, dot));
    if (around != rest_.end()) replace_by_its_parts(around);
  }
  rest_.erase(find_rest(first.name));
  put_back(part);
  put_back(first);
  return true;
}

// The first in the order of the walk, modules before what they are made of.
std::optional<Part> Allocation::find_that_fits(Bytes limit, std::vector<Part> search) const {
  while (!search.empty()) {
    const auto part = search.front();
    search.erase(search.begin());
    const auto partners = partners_of(part, search);
    if (partners.complete && sizes_.of(part.name) + partners.bytes <= limit) return part;
    if (!whole_.splits(part)) continue;
    const auto below = parts_below(part);
    search.insert(search.begin(), below.begin(), below.end());
  }
  return {};
}

// Partners have partners of their own. A tied parameter counts where it has its first name, so that sizes add up.
Allocation::Partners Allocation::partners_of(const Part& part, const std::vector<Part>& among) const {
  Partners partners;
  std::vector<std::string> together = {part.name};
  const auto is_inside = [&](const std::string& name) {
    return std::any_of(together.begin(), together.end(), [&](const auto& whole) { return is_within(name, whole); });
  };
  const auto join = [&](const std::string& name) {
    const auto partner =
        std::find_if(among.begin(), among.end(), [&](const Part& other) { return is_within(name, other.name); });
    if (partner == among.end()) {
      partners.complete = partners.complete && place_in(map_, name) != nullptr;
      return;
    }
    together.push_back(partner->name);
    partners.names.push_back(partner->name);
    partners.bytes += sizes_.of(partner->name);
  };
  for (std::size_t joined = 0; joined != together.size();) {
    joined = together.size();
    for (const auto& group : ties_) {
      if (std::none_of(group.begin(), group.end(), is_inside)) continue;
      for (const auto& name : group) {
        if (!is_inside(name)) join(name);
      }
    }
  }
  return partners;
}

std::vector<Part>::iterator Allocation::find_rest(const std::string& name) {
  return std::find_if(rest_.begin(), rest_.end(), [&](const Part& part) { return part.name == name; });
}

void Allocation::replace_by_its_parts(std::vector<Part>::iterator part) {
  const auto below = parts_below(*part);
  rest_.insert(rest_.erase(part), below.begin(), below.end());
}

void Allocation::leave_largest(const Part& part) {
  std::erase_if(largest_.names, [&](const std::string& name) { return is_within(name, part.name); });
  if (largest_.names.empty()) find_largest();
}

// Single tensors are no layers.
void Allocation::find_largest() {
  std::vector<Part> modules;
  std::copy_if(rest_.begin(), rest_.end(), std::back_inserter(modules),
               [](const Part& part) { return part.node != nullptr; });
  largest_ = largest_layer(modules, sizes_, whole_);
}

DeviceMap infer_device_map(const ModuleTree& tree, const DeviceMapOptions& options) {
  auto map = Allocation(tree, options).run();
  return options.clean_result ? cleaned(std::move(map)) : map;
}

}  // namespace hortator::bigmodel
