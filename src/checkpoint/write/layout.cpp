#include "checkpoint/write/layout.hpp"

#include <algorithm>
#include <numeric>

#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::checkpoint {
namespace {

std::int64_t size_in_bytes(const TensorSize& tensor) { return tensor.elements * tensor.element_bytes; }

/// A border between ranks: before element `element` of tensor `tensor`.
struct Border {
  std::size_t tensor = 0;
  std::int64_t element = 0;
};

Border near_byte(std::span<const TensorSize> tensors, std::int64_t byte, std::int64_t grain_bytes) {
  std::size_t i = 0;
  while (i < tensors.size() && byte >= size_in_bytes(tensors[i])) byte -= size_in_bytes(tensors[i++]);
  if (i == tensors.size()) return {i, 0};
  const auto size = size_in_bytes(tensors[i]);
  if (size > grain_bytes) return {i, byte / grain_bytes * grain_bytes / tensors[i].element_bytes};
  return {2 * byte < size ? i : i + 1, 0};
}

/// An estimate of the bytes that HDF5 needs for an entry, usually too high. The excess costs nothing: it stays a hole
/// in the file.
std::int64_t structure_bytes(const std::string& name, const OutlineEntry& entry) {
  const auto* text = std::get_if<std::string>(&entry.content);
  return 1000 + 4 * static_cast<std::int64_t>(name.size()) +
         (text != nullptr ? 3 * static_cast<std::int64_t>(text->size()) : 0);
}

constexpr std::int64_t min_structure_bytes = std::int64_t{1} << 16;
constexpr std::int64_t page_bytes = 4096;

TensorSize size_of_tensor(const TensorPlacement& tensor) {
  return {.elements = tensor.spec.elements(), .element_bytes = tensor.spec.element_bytes()};
}

/// The sizes of the common tensors to be distributed: 0 for sharded ones, which are written by the ranks that hold
/// them.
std::vector<TensorSize> common_sizes(const Layout& layout) {
  std::vector<TensorSize> sizes;
  for (std::size_t i = 0; i < layout.common_tensors; ++i) {
    sizes.push_back(size_of_tensor(layout.tensors[i]));
    if (!layout.tensors[i].of_ranks.empty()) sizes.back().elements = 0;
  }
  return sizes;
}

/// The ranks in the order in which the common tensors are distributed over them: the ranks of a file are neighbours.
std::vector<int> ranks_by_file(const std::vector<std::size_t>& file_of) {
  std::vector<int> ranks(file_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(
      ranks, [&](int a, int b) { return file_of[static_cast<std::size_t>(a)] < file_of[static_cast<std::size_t>(b)]; });
  return ranks;
}

class LayoutBuilder {
 public:
  LayoutBuilder(const std::vector<std::size_t>& file_of, const std::set<std::string>& frozen)
      : frozen_(frozen),
        files_(1 + *std::ranges::max_element(file_of)),
        structure_(frozen.empty() ? files_ : 2 * files_, min_structure_bytes) {
    layout_.file_of = file_of;
    layout_.state_files = files_;
  }

  void add(const StateOutline& outline, const std::string& prefix, const std::vector<std::size_t>& files) {
    for (const auto& entry : outline) {
      const auto name = prefix + entry.name;
      const bool is_frozen = frozen_.contains(name);
      for (const auto file : files) structure_[is_frozen ? file + files_ : file] += structure_bytes(name, entry);
      if (const auto* spec = std::get_if<formats::TensorSpec>(&entry.content))
        layout_.tensors.push_back({.name = name, .spec = *spec, .is_frozen = is_frozen});
    }
  }

  void add_common(const StateOutline& common, const ShardRanges& shards) {
    std::vector<std::size_t> files(files_);
    std::iota(files.begin(), files.end(), 0);
    add(common, "", files);
    layout_.common_tensors = layout_.tensors.size();
    for (std::size_t i = 0; i < layout_.common_tensors; ++i) {
      const auto shard = shards.find(layout_.tensors[i].name);
      if (shard != shards.end()) add_shard(i, shard->second);
    }
    const auto sizes = common_sizes(layout_);
    const auto order = ranks_by_file(layout_.file_of);
    const auto ranks = static_cast<int>(order.size());
    for (int i = 0; i < ranks; ++i) {
      const auto file = layout_.file_of[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      for (const auto& [tensor, elements] : slices_of(sizes, ranks, i)) add_to_pieces(tensor, elements, file);
    }
  }

  void add_own(const StateOutline& own, int rank) {
    const auto file = layout_.file_of[static_cast<std::size_t>(rank)];
    layout_.first_own.push_back(layout_.tensors.size());
    add(own, rank_folder(rank) + "/", {file});
    for (auto i = layout_.first_own.back(); i < layout_.tensors.size(); ++i) {
      const auto elements = layout_.tensors[i].spec.elements();
      if (elements > 0) add_to_pieces(i, {0, elements}, file);
    }
  }

  Layout build() && {
    for (const auto bytes : structure_) {
      const auto begin = (bytes + page_bytes - 1) / page_bytes * page_bytes;
      layout_.files.push_back({.data_begin = begin, .end = begin});
    }
    for (auto& tensor : layout_.tensors) {
      for (auto& piece : tensor.pieces) {
        auto& end = layout_.files[piece.file].end;
        const auto bytes = piece.elements.size() * size_of_tensor(tensor).element_bytes;
        piece.offset = formats::place_dataset(end, bytes);
        end = piece.offset + bytes;
      }
    }
    return std::move(layout_);
  }

 private:
  void add_shard(std::size_t tensor, const std::vector<core::Range>& of_ranks) {
    layout_.tensors[tensor].of_ranks = of_ranks;
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      if (of_ranks[rank].size() > 0) add_to_pieces(tensor, of_ranks[rank], layout_.file_of[rank]);
    }
  }

  void add_to_pieces(std::size_t tensor, core::Range elements, std::size_t file) {
    if (layout_.tensors[tensor].is_frozen) file += files_;
    auto& pieces = layout_.tensors[tensor].pieces;
    if (!pieces.empty() && pieces.back().file == file) {
      pieces.back().elements.end = elements.end;
    } else {
      pieces.push_back({.file = file, .elements = elements});
    }
  }

  const std::set<std::string>& frozen_;
  std::size_t files_;  ///< without the frozen ones
  std::vector<std::int64_t> structure_;
  Layout layout_;
};

}  // namespace

std::vector<TensorSlice> slices_of(std::span<const TensorSize> tensors, int ranks, int rank, std::int64_t grain_bytes) {
  const auto total =
      std::transform_reduce(tensors.begin(), tensors.end(), std::int64_t{0}, std::plus<>(), size_in_bytes);
  const auto part = core::balanced(total, ranks, rank);
  const auto begin = near_byte(tensors, part.begin, grain_bytes);
  const auto end = near_byte(tensors, part.end, grain_bytes);
  std::vector<TensorSlice> slices;
  for (auto i = begin.tensor; i < tensors.size() && i <= end.tensor; ++i) {
    const core::Range elements = {i == begin.tensor ? begin.element : 0,
                                  i == end.tensor ? end.element : tensors[i].elements};
    if (elements.size() > 0) slices.push_back({i, elements});
  }
  return slices;
}

Layout make_layout(const StateOutline& common, const std::vector<StateOutline>& own,
                   const std::vector<std::size_t>& file_of, const ShardRanges& shards,
                   const std::set<std::string>& frozen) {
  LayoutBuilder builder(file_of, frozen);
  builder.add_common(common, shards);
  for (std::size_t rank = 0; rank < own.size(); ++rank) builder.add_own(own[rank], static_cast<int>(rank));
  return std::move(builder).build();
}

std::vector<TensorSlice> slices_of_rank(const Layout& layout, int rank) {
  const auto order = ranks_by_file(layout.file_of);
  const auto turn = std::ranges::find(order, rank) - order.begin();
  auto slices = slices_of(common_sizes(layout), static_cast<int>(order.size()), static_cast<int>(turn));
  const auto self = static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < layout.common_tensors; ++i) {
    const auto& of_ranks = layout.tensors[i].of_ranks;
    if (!of_ranks.empty() && of_ranks[self].size() > 0) slices.push_back({i, of_ranks[self]});
  }
  std::ranges::stable_sort(slices, [](const TensorSlice& a, const TensorSlice& b) { return a.tensor < b.tensor; });
  const auto end = self + 1 < layout.first_own.size() ? layout.first_own[self + 1] : layout.tensors.size();
  for (auto i = layout.first_own[self]; i < end; ++i) {
    const auto elements = layout.tensors[i].spec.elements();
    if (elements > 0) slices.push_back({i, {0, elements}});
  }
  std::ranges::stable_partition(slices,
                                [&](const TensorSlice& slice) { return !layout.tensors[slice.tensor].is_frozen; });
  return slices;
}

std::vector<std::size_t> Layout::files_of(int rank) const {
  const auto file = file_of[static_cast<std::size_t>(rank)];
  return files.size() > state_files ? std::vector<std::size_t>{file, file + state_files}
                                    : std::vector<std::size_t>{file};
}

std::int64_t offset_of(const Layout& layout, const TensorSlice& slice) {
  const auto& tensor = layout.tensors[slice.tensor];
  const auto piece = std::ranges::find_if(
      tensor.pieces, [&](const StoredPiece& one) { return slice.elements.begin < one.elements.end; });
  return piece->offset + (slice.elements.begin - piece->elements.begin) * size_of_tensor(tensor).element_bytes;
}

int creator_of(const Layout& layout, std::size_t file) {
  return static_cast<int>(std::ranges::find(layout.file_of, file % layout.state_files) - layout.file_of.begin());
}

std::uint64_t hash(const Layout& layout) {
  auto value = core::hash("");
  const auto add = [&](std::int64_t number) {
    value = core::hash({reinterpret_cast<const char*>(&number), sizeof number}, value);
  };
  for (const auto& file : layout.files) {
    add(file.data_begin);
    add(file.end);
  }
  for (const auto& tensor : layout.tensors) {
    value = core::hash(tensor.name, value);
    for (const auto& piece : tensor.pieces) {
      add(static_cast<std::int64_t>(piece.file));
      add(piece.elements.begin);
      add(piece.elements.end);
      add(piece.offset);
    }
    for (const auto& range : tensor.of_ranks) {
      add(range.begin);
      add(range.end);
    }
  }
  return value;
}

}  // namespace hortator::checkpoint
