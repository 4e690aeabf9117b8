#include "checkpoint/write/frozen_tensors.hpp"

#include <algorithm>

#include "checkpoint/packed_bytes.hpp"
#include "checkpoint/write/snapshot_layout.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

constexpr char separator = '\0';

/// The tensors of a snapshot without own entries, with the checksums of their blocks, on rank 0. @collective
std::map<std::string, Manifest::Dataset> datasets_of(const mpi::Communicator& comm, const Snapshot& snapshot,
                                                     const SaveOptions& options) {
  const std::vector<StateOutline> no_own(static_cast<std::size_t>(comm.size()));
  const auto layout =
      make_layout(common_outline(snapshot), no_own, files_of(options, snapshot, comm.size()), ranges_of(snapshot));
  std::string mine;
  mpi::all_or_none(comm, [&] { put(mine, checksums_of(sources_of(snapshot, layout, comm.rank()))); });
  std::vector<std::vector<std::uint32_t>> checksums;
  for (const auto& packed : mpi::gather(comm, mine)) PackedBytes(packed).take(checksums.emplace_back());
  std::map<std::string, Manifest::Dataset> datasets;
  if (comm.rank() != 0) return datasets;
  auto in_order = checkpoint::datasets_of(layout, checksums);
  for (std::size_t i = 0; i < in_order.size(); ++i) datasets.emplace(layout.tensors[i].name, std::move(in_order[i]));
  return datasets;
}

bool has_same_tensors(const FrozenFiles& found, const std::map<std::string, Manifest::Dataset>& datasets) {
  return std::ranges::equal(found.datasets, datasets, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.spec == b.second.spec && a.second.blocks == b.second.blocks;
  });
}

std::optional<FrozenFiles> frozen_files_in(const std::filesystem::path& folder) {
  try {
    return frozen_files_of(folder, read_manifest(folder));
  } catch (const formats::FileError&) {  // a save that was killed, or a damaged one
    return {};
  }
}

}  // namespace

FrozenTensors::FrozenTensors(const mpi::Communicator& comm, const Snapshot& snapshot)
    : comm_(comm), snapshot_(snapshot) {
  const auto mine =
      text::join(std::vector<std::string>(snapshot.frozen.begin(), snapshot.frozen.end()), std::string(1, separator));
  std::set<std::string> known;
  for (const auto& names : mpi::all_gather(comm, std::string_view(mine))) {
    for (const auto& name : text::split(names, separator)) known.insert(name);
  }
  for (const auto& entry : common_outline(snapshot)) {
    const auto* spec = std::get_if<formats::TensorSpec>(&entry.content);
    if (spec != nullptr && spec->elements() > 0 && known.contains(entry.name)) names_.insert(entry.name);
  }
}

Snapshot FrozenTensors::common_entries(bool are_frozen) const {
  Snapshot chosen{.shards = snapshot_.shards, .readers = snapshot_.readers};
  for (const auto& [name, value] : snapshot_.common.values()) {
    if (names_.contains(name) == are_frozen)
      std::visit([&, &name = name](const auto& held) { chosen.common.put(name, held); }, value);
  }
  std::erase_if(chosen.shards, [&](const auto& shard) { return names_.contains(shard.first) != are_frozen; });
  return chosen;
}

Snapshot FrozenTensors::others() const {
  auto others = common_entries(/*are_frozen=*/false);
  others.own = snapshot_.own;
  return others;
}

std::optional<FrozenFiles> FrozenTensors::find(const SaveOptions& options) const {
  std::vector<FrozenFiles> candidates;
  if (comm_.rank() == 0) {
    for (const auto& folder : options.earlier) {
      if (auto found = frozen_files_in(folder)) candidates.push_back(*std::move(found));
    }
  }
  if (!mpi::broadcast(comm_, !candidates.empty())) return {};
  const auto datasets = datasets_of(comm_, common_entries(/*are_frozen=*/true), options);
  const auto same =
      std::ranges::find_if(candidates, [&](const FrozenFiles& one) { return has_same_tensors(one, datasets); });
  std::string names;
  if (same != candidates.end()) names = text::join(same->names(), std::string(1, separator));
  names = mpi::broadcast(comm_, std::string_view(names));
  if (names.empty()) return {};
  if (comm_.rank() == 0) return *same;
  FrozenFiles found;
  for (const auto& name : text::split(names, separator)) found.files.push_back({.name = name});
  return found;
}

std::optional<FrozenFiles> FrozenTensors::share(const SaveOptions& options,
                                                const std::function<void(const FrozenFiles&)>& link) const {
  if (names_.empty()) return {};
  auto found = find(options);
  if (!found) return {};
  try {
    mpi::all_or_none(comm_, [&] { link(*found); });
  } catch (const Error& error) {  // the same on all ranks
    if (comm_.rank() == 0) log::warn("frozen weights are written again: ", error.what());
    return {};
  }
  return found;
}

}  // namespace hortator::checkpoint
