#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format.hpp"
#include "checkpoint/state_outline.hpp"
#include "checkpoint/stored_piece.hpp"
#include "core/range.hpp"
#include "formats/hdf5/memory_file.hpp"

/// Which rank writes which elements. Pure functions.
namespace hortator::checkpoint {

/// The size of a tensor to be written.
struct TensorSize {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 1;  ///< a power of two
};

/// A range of elements of one tensor, which one rank writes.
struct TensorSlice {
  std::size_t tensor = 0;
  core::Range elements;

  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

/// What `rank` of `ranks` writes. The bytes of all tensors, one after the other, are distributed in equal contiguous
/// parts, so that each rank writes one range of the file. Each border then moves to a multiple of `grain_bytes` if it
/// is within a larger tensor, otherwise to the nearest end of the tensor, so that small tensors are not cut. No two
/// ranks write to the same block.
std::vector<TensorSlice> slices_of(std::span<const TensorSize> tensors, int ranks, int rank,
                                   std::int64_t grain_bytes = block_bytes);

struct TensorPlacement {
  std::string name;
  formats::TensorSpec spec;
  std::vector<StoredPiece> pieces = {};    ///< in order; together all elements. Empty for a tensor without elements
  std::vector<core::Range> of_ranks = {};  ///< for sharded tensors, the elements that each rank holds and writes
  bool is_frozen = false;                  ///< it is stored in the frozen files
};

/// For each sharded tensor, the elements that each rank holds, in ascending order.
using ShardRanges = std::map<std::string, std::vector<core::Range>>;

struct Layout {
  std::vector<TensorPlacement> tensors = {};  ///< the common tensors by name, then rank 0's own, then rank 1's, ...
  std::size_t common_tensors = 0;
  std::vector<std::size_t> first_own = {};      ///< for each rank, the index of its first own tensor in `tensors`
  std::vector<formats::FileLayout> files = {};  ///< the state files, then as many frozen ones, or none
  std::size_t state_files = 0;
  std::vector<std::size_t> file_of = {};  ///< the state file that each rank writes to; its lowest rank creates it

  /// The files that `rank` writes to: the state file, and the frozen one if there is any.
  std::vector<std::size_t> files_of(int rank) const;
  std::string name_of_file(std::size_t file) const { return stored_file(file, state_files, files.size()); }
};

/// The ranks of one file write a contiguous range of the common tensors, so that as few tensors as possible are cut
/// between files. Tensors in `shards` are written by the ranks that hold them; then ranks must be assigned to files in
/// ascending order. Common tensors in `frozen` are stored in files of their own, one beside each state file.
Layout make_layout(const StateOutline& common, const std::vector<StateOutline>& own,
                   const std::vector<std::size_t>& file_of, const ShardRanges& shards = {},
                   const std::set<std::string>& frozen = {});

/// What `rank` writes: its part of the common tensors, then its own tensors, then its part of the frozen ones.
/// TensorSlice::tensor is an index into Layout::tensors.
std::vector<TensorSlice> slices_of_rank(const Layout& layout, int rank);

/// The byte in its file at which `slice` starts. The slice must lie within one piece.
std::int64_t offset_of(const Layout& layout, const TensorSlice& slice);

/// The lowest rank that writes to `file`, which creates it.
int creator_of(const Layout& layout, std::size_t file);

std::uint64_t hash(const Layout& layout);

/// Calls `work(tensor, piece)` for each piece that is stored in file number `file`.
template <typename Tensors, typename Work>
void for_each_piece_in_file(Tensors& tensors, std::size_t file, const Work& work) {
  for (auto& tensor : tensors) {
    for (auto& piece : tensor.pieces) {
      if (piece.file == file) work(tensor, piece);
    }
  }
}

}  // namespace hortator::checkpoint
