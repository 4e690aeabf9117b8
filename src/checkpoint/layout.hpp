#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/outline.hpp"
#include "checkpoint/write/plan.hpp"
#include "formats/hdf5/memory_file.hpp"

/// Which tensor lies where in which file, and who writes it. Pure: every rank finds the same, before any file exists.
namespace hortator::checkpoint {

/// A run of a tensor's elements that lies in one file.
struct Piece {
  std::size_t file = 0;
  core::Range elements = {};
  std::int64_t offset = 0;  ///< of the first of them, in the file

  friend bool operator==(const Piece&, const Piece&) = default;
};

struct Placement {
  std::string name;
  formats::TensorSpec spec;
  std::vector<Piece> pieces = {};          ///< in order, together all elements; none where there are no elements
  std::vector<core::Range> of_ranks = {};  ///< what each rank brings, where that is not the plan's to deal out
};

/// Of tensors that all ranks have parts of: what each rank has, in ascending order.
using Shares = std::map<std::string, std::vector<core::Range>>;

struct Layout {
  std::vector<Placement> tensors = {};  ///< those that all ranks have, by name, then those of rank 0 alone, and so on
  std::size_t common_tensors = 0;
  std::vector<std::size_t> first_own = {};  ///< for each rank, in `tensors`
  std::vector<formats::FileLayout> files = {};
  std::vector<std::size_t> file_of = {};  ///< into which each rank writes; its lowest rank makes it
};

/// What a dataset holds that is `piece` of a tensor like `whole`: whole rows where it can, else one row of elements.
formats::TensorSpec part_of(const formats::TensorSpec& whole, const Piece& piece);

/// Ranks of one file write a contiguous stretch of what all have, so that each file has as few cut tensors as it can.
/// Common tensors that are `shares` are written by those who have them; then the files' ranks must be in their order.
Layout make_layout(const Outline& common, const std::vector<Outline>& own, const std::vector<std::size_t>& file_of,
                   const Shares& shares = {});

/// What `rank` writes: its share of what all have, and what it alone has. `tensor` counts in Layout::tensors.
std::vector<Slab> work_of(const Layout& layout, int rank);

/// The place in its file of the first element of `slab`, which lies in one piece.
std::int64_t offset_of(const Layout& layout, const Slab& slab);

/// The lowest rank that writes into `file`.
int creator_of(const Layout& layout, std::size_t file);

std::uint64_t hash(const Layout& layout);

}  // namespace hortator::checkpoint
