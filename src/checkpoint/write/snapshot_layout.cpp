#include "checkpoint/write/snapshot_layout.hpp"

#include <algorithm>

namespace hortator::checkpoint {
namespace {

/// The tensors to write, in the order of the layout. Other ranks' own tensors are undefined.
std::vector<at::Tensor> tensors_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  std::vector<at::Tensor> tensors(layout.tensors.size());
  for (std::size_t i = 0; i < layout.common_tensors; ++i) {
    const auto& name = layout.tensors[i].name;
    const auto shard = snapshot.shards.find(name);
    tensors[i] = shard != snapshot.shards.end() ? shard->second.part : snapshot.common.get<at::Tensor>(name);
  }
  auto next = layout.first_own[static_cast<std::size_t>(rank)];
  for (const auto& [name, value] : snapshot.own.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) tensors[next++] = *tensor;
  }
  return tensors;
}

}  // namespace

StateOutline common_outline(const Snapshot& snapshot) {
  auto outline = outline_of(snapshot.common);
  for (const auto& [name, shard] : snapshot.shards) outline.push_back({.name = name, .content = shard.whole});
  std::ranges::sort(outline, [](const OutlineEntry& a, const OutlineEntry& b) { return a.name < b.name; });
  return outline;
}

ShardRanges ranges_of(const Snapshot& snapshot) {
  ShardRanges shards;
  for (const auto& [name, shard] : snapshot.shards) shards.emplace(name, shard.of_ranks);
  return shards;
}

/// A file holds one contiguous range of a tensor. Sharded tensors are in the order of the ranks, so they need files in
/// that order too; otherwise all ranks write to one file.
std::vector<std::size_t> files_of(const SaveOptions& options, const Snapshot& snapshot, int ranks) {
  const bool fits = snapshot.shards.empty() || std::ranges::is_sorted(options.file_of);
  if (options.file_of.empty() || !fits) return std::vector<std::size_t>(static_cast<std::size_t>(ranks), 0);
  return options.file_of;
}

std::vector<TensorSource> sources_of(const Snapshot& snapshot, const Layout& layout, int rank) {
  auto sources = sources_of(slices_of_rank(layout, rank), tensors_of(snapshot, layout, rank));
  for (auto& source : sources) {
    const auto reader = snapshot.readers.find(layout.tensors[source.slice.tensor].name);
    if (source.slice.tensor < layout.common_tensors && reader != snapshot.readers.end()) source.read = reader->second;
    if (layout.tensors[source.slice.tensor].of_ranks.empty()) continue;
    source.first = source.slice.elements.begin;
    source.is_part = true;
  }
  return sources;
}

}  // namespace hortator::checkpoint
