#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/state_outline.hpp"
#include "checkpoint/stored_piece.hpp"
#include "checkpoint/write/slice_plan.hpp"
#include "formats/hdf5/memory_file.hpp"

/// Which tensor is stored where in which file, and which rank writes it. Pure functions: every rank computes the same
/// layout before any file exists.
namespace hortator::checkpoint {

struct TensorPlacement {
  std::string name;
  formats::TensorSpec spec;
  std::vector<StoredPiece> pieces = {};    ///< in order; together all elements. Empty for a tensor without elements
  std::vector<core::Range> of_ranks = {};  ///< for sharded tensors, the elements that each rank holds and writes
};

/// For each sharded tensor, the elements that each rank holds, in ascending order.
using ShardRanges = std::map<std::string, std::vector<core::Range>>;

struct Layout {
  std::vector<TensorPlacement> tensors = {};  ///< the common tensors by name, then rank 0's own, then rank 1's, ...
  std::size_t common_tensors = 0;
  std::vector<std::size_t> first_own = {};  ///< for each rank, the index of its first own tensor in `tensors`
  std::vector<formats::FileLayout> files = {};
  std::vector<std::size_t> file_of = {};  ///< the file that each rank writes to; the file's lowest rank creates it
};

/// The ranks of one file write a contiguous range of the common tensors, so that as few tensors as possible are cut
/// between files. Tensors in `shards` are written by the ranks that hold them; then ranks must be assigned to files in
/// ascending order.
Layout make_layout(const StateOutline& common, const std::vector<StateOutline>& own,
                   const std::vector<std::size_t>& file_of, const ShardRanges& shards = {});

/// What `rank` writes: its part of the common tensors, then its own tensors. TensorSlice::tensor is an index into
/// Layout::tensors.
std::vector<TensorSlice> slices_of_rank(const Layout& layout, int rank);

/// The byte in its file at which `slice` starts. The slice must lie within one piece.
std::int64_t offset_of(const Layout& layout, const TensorSlice& slice);

/// The lowest rank that writes to `file`.
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
