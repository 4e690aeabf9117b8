#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/range.hpp"

/// How tensors are divided among the ranks of a tensor group. Pure.
namespace hortator::parallel {

using Sizes = std::vector<std::int64_t>;

/// One dimension of a tensor is divided: it consists of `blocks` equal blocks, and each rank has its part of every
/// block. Fused queries, keys and values are 3 blocks. A dimension of one block may be padded, so that a vocabulary of
/// any size has equal parts: its last elements exist in parts only, where a parameter's are zero.
struct Division {
  std::int64_t dim = 0;
  std::int64_t blocks = 1;
  std::int64_t padding = 0;  ///< elements; fewer than a part has
  bool to_sequence = false;  ///< of a weight: sums over the ranks of its products are divided along the sequence

  /// The same division of another dimension, or of an activation.
  Division along(std::int64_t other) const { return {.dim = other, .blocks = blocks, .padding = padding}; }
  bool operator==(const Division&) const = default;
};

/// The division of `size` elements along `dim` into equal parts, with the padding that this needs. Nothing if a rank
/// would have padding only.
std::optional<Division> padded(std::int64_t dim, std::int64_t size, int ranks);

/// The elements of a part of `part` elements that are not padding.
std::int64_t without_padding(std::int64_t part, const Division& division, int rank, int ranks);

/// Whether each rank gets an equal part.
bool divides(at::IntArrayRef whole, const Division& division, int ranks);

/// The sizes of a rank's part. Requires divides().
Sizes part_sizes(at::IntArrayRef whole, const Division& division, int ranks);

/// The sizes of the tensor whose parts have the sizes `part`.
Sizes whole_sizes(at::IntArrayRef part, const Division& division, int ranks);

/// A whole tensor in memory is [rows, ranks, run]: each rank has a run of elements of each row, and its part is these
/// runs one after the other.
struct PartRuns {
  std::int64_t rows = 1;
  std::int64_t run = 0;
};
PartRuns runs_of(at::IntArrayRef part, const Division& division);

/// The elements of the whole tensor among which the elements `of_part` of rank `index` are. Nothing but these, where
/// they lie in one row; else the rows in which they are.
core::Range cover_of(const PartRuns& runs, core::Range of_part, int index, int ranks);

struct DividedSizes {
  Division division;
  Sizes part;  ///< of each rank
};

/// `requested` with the size that stands for -1, for a tensor of `elements` elements.
Sizes complete_sizes(at::IntArrayRef requested, std::int64_t elements);

/// A divided tensor after view() or reshape() to `sizes` (none is -1). Nothing if a rank's elements would not be its
/// part along any dimension.
std::optional<DividedSizes> after_view(at::IntArrayRef whole, const Division& division, at::IntArrayRef sizes,
                                       int ranks);

/// The division after the elements from `begin` to `end` are taken from the divided dimension of `size` elements.
/// Nothing unless these are whole blocks.
std::optional<Division> after_slice(std::int64_t size, const Division& division, std::int64_t begin, std::int64_t end);

/// The division after the dimensions are reordered: dimension i becomes that which was `order`[i].
Division after_permutation(const Division& division, at::IntArrayRef order);

/// `dim` counted from the front, where negative numbers count from the back of `dims` dimensions.
inline std::int64_t from_front(std::int64_t dim, std::int64_t dims) { return dim < 0 ? dim + dims : dim; }

}  // namespace hortator::parallel
