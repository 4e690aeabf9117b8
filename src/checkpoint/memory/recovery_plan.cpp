#include "checkpoint/memory/recovery_plan.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "checkpoint/format.hpp"
#include "checkpoint/packed_bytes.hpp"

namespace hortator::checkpoint {
namespace {

using HeldByNodes = std::vector<const HeldGeneration*>;  ///< null where a node has nothing of it

HeldByNodes held_by(std::span<const NodeInventory> nodes, std::int64_t number) {
  HeldByNodes held;
  const HeldGeneration* first = nullptr;
  for (const auto& node : nodes) {
    const auto found = std::ranges::find(node, number, &HeldGeneration::number);
    const auto* mine = found == node.end() ? nullptr : &*found;
    if (first == nullptr) first = mine;
    held.push_back(mine != nullptr && mine->manifest == first->manifest ? mine : nullptr);
  }
  return held;
}

std::optional<Recovery> recovery_of(const HeldByNodes& held) {
  const auto first = std::ranges::find_if(held, [](const auto* one) { return one != nullptr; });
  Recovery recovery{.number = (*first)->number,
                    .updates = (*first)->updates,
                    .files = (*first)->files.size(),
                    .state_files = static_cast<std::size_t>((*first)->state_files),
                    .manifest_from = static_cast<int>(first - held.begin())};
  for (const auto* one : held) recovery.manifest_to.push_back(one == nullptr);
  for (std::size_t file = 0; file < (*first)->files.size(); ++file) {
    const auto has_file = [&](const auto* one) { return one != nullptr && one->files[file]; };
    const auto from = std::ranges::find_if(held, has_file);
    if (from == held.end()) return {};
    Recovery::Transfer transfer{
        .file = file, .bytes = (*first)->bytes[file], .from = static_cast<int>(from - held.begin())};
    for (const auto* one : held) transfer.to.push_back(!has_file(one));
    if (std::ranges::count(transfer.to, true) > 0) recovery.transfers.push_back(std::move(transfer));
  }
  return recovery;
}

}  // namespace

std::string Recovery::name_of_file(std::size_t file) const { return stored_file(file, state_files, files); }

std::int64_t Recovery::missing_bytes(int node) const {
  std::int64_t bytes = 0;
  for (const auto& transfer : transfers) bytes += transfer.to[static_cast<std::size_t>(node)] ? transfer.bytes : 0;
  return bytes;
}

std::vector<Recovery> recoveries(std::span<const NodeInventory> nodes) {
  std::set<std::int64_t, std::greater<>> numbers;
  for (const auto& node : nodes) {
    for (const auto& generation : node) numbers.insert(generation.number);
  }
  std::vector<Recovery> found;
  for (const auto number : numbers) {
    if (auto recovery = recovery_of(held_by(nodes, number))) found.push_back(*std::move(recovery));
  }
  return found;
}

std::string pack(const NodeInventory& inventory) {
  std::string bytes;
  put(bytes, static_cast<std::uint64_t>(inventory.size()));
  for (const auto& one : inventory) {
    put(bytes, one.number);
    put(bytes, one.updates);
    put(bytes, one.manifest);
    put(bytes, one.state_files);
    put(bytes, std::vector<std::uint8_t>(one.files.begin(), one.files.end()));
    put(bytes, one.bytes);
  }
  return bytes;
}

NodeInventory unpack_inventory(std::string_view bytes) {
  PackedBytes from(bytes);
  NodeInventory inventory(from.take<std::uint64_t>());
  for (auto& one : inventory) {
    one.number = from.take<std::int64_t>();
    one.updates = from.take<std::int64_t>();
    one.manifest = from.take<std::uint32_t>();
    one.state_files = from.take<std::int64_t>();
    std::vector<std::uint8_t> files;
    from.take(files);
    one.files.assign(files.begin(), files.end());
    from.take(one.bytes);
  }
  return inventory;
}

}  // namespace hortator::checkpoint
