#include "parallel/tensor/division.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace hortator::parallel {
namespace {

std::int64_t product(at::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

auto at_dim(const Division& division) { return static_cast<std::size_t>(division.dim); }

// A view that leaves the divided dimension, and what is in front of it, as it was.
std::optional<DividedSizes> after_view_of_padded(at::IntArrayRef whole, const Division& division, at::IntArrayRef sizes,
                                                 int ranks) {
  const auto before = product(whole.slice(0, at_dim(division)));
  std::int64_t outside = 1;
  for (std::size_t dim = 0; dim < sizes.size(); outside *= sizes[dim++]) {
    if (outside != before || sizes[dim] != whole[at_dim(division)]) continue;
    const auto there = division.along(static_cast<std::int64_t>(dim));
    return DividedSizes{.division = there, .part = part_sizes(sizes, there, ranks)};
  }
  return {};
}

}  // namespace

std::optional<Division> padded(std::int64_t dim, std::int64_t size, int ranks) {
  const auto part = (size + ranks - 1) / ranks;
  const auto padding = part * ranks - size;
  if (padding >= part) return {};
  return Division{.dim = dim, .padding = padding};
}

std::int64_t without_padding(std::int64_t part, const Division& division, int rank, int ranks) {
  return rank + 1 == ranks ? part - division.padding : part;
}

bool divides(at::IntArrayRef whole, const Division& division, int ranks) {
  return division.dim < static_cast<std::int64_t>(whole.size()) &&
         (whole[at_dim(division)] + division.padding) % (division.blocks * ranks) == 0;
}

Sizes part_sizes(at::IntArrayRef whole, const Division& division, int ranks) {
  auto sizes = whole.vec();
  auto& size = sizes[at_dim(division)];
  size = (size + division.padding) / ranks;
  return sizes;
}

Sizes whole_sizes(at::IntArrayRef part, const Division& division, int ranks) {
  auto sizes = part.vec();
  auto& size = sizes[at_dim(division)];
  size = size * ranks - division.padding;
  return sizes;
}

PartRuns runs_of(at::IntArrayRef part, const Division& division) {
  const auto rows = product(part.slice(0, at_dim(division))) * division.blocks;
  return {.rows = rows, .run = rows == 0 ? 0 : product(part) / rows};
}

core::Range cover_of(const PartRuns& runs, core::Range of_part, int index, int ranks) {
  if (of_part.size() == 0) return {};
  const auto first = of_part.begin / runs.run, last = (of_part.end - 1) / runs.run;
  const auto row = runs.run * ranks;
  if (first < last) return {.begin = first * row, .end = (last + 1) * row};
  const auto begin = first * row + index * runs.run + (of_part.begin - first * runs.run);
  return {.begin = begin, .end = begin + of_part.size()};
}

Sizes complete_sizes(at::IntArrayRef requested, std::int64_t elements) {
  auto sizes = requested.vec();
  std::int64_t known = 1;
  auto open = sizes.end();
  for (auto size = sizes.begin(); size != sizes.end(); ++size) {
    if (*size < 0) {
      open = size;
    } else {
      known *= *size;
    }
  }
  if (open != sizes.end() && known > 0) *open = elements / known;
  return sizes;
}

// In memory the tensor is [before, ranks, after]: `before` counts the blocks that lie in front of each other, and a
// rank's part of a block has `after` elements. A view keeps that order.
std::optional<DividedSizes> after_view(at::IntArrayRef whole, const Division& division, at::IntArrayRef sizes,
                                       int ranks) {
  const auto before = product(whole.slice(0, at_dim(division))) * division.blocks;
  if (before == 0 || product(whole) != product(sizes)) return {};
  if (division.padding > 0) return after_view_of_padded(whole, division, sizes, ranks);
  const auto after = product(whole) / before / ranks;
  std::int64_t outside = 1;
  for (std::size_t dim = 0; dim < sizes.size(); outside *= sizes[dim++]) {
    if (outside == 0 || before % outside != 0) return {};
    const Division there{.dim = static_cast<std::int64_t>(dim), .blocks = before / outside};
    if (!divides(sizes, there, ranks)) continue;
    const auto in_block = sizes[dim] / (there.blocks * ranks);
    if (in_block * product(sizes.slice(dim + 1)) == after)
      return DividedSizes{.division = there, .part = part_sizes(sizes, there, ranks)};
  }
  return {};
}

std::optional<Division> after_slice(std::int64_t size, const Division& division, std::int64_t begin, std::int64_t end) {
  if (begin == 0 && end == size) return division;
  if (division.padding > 0) return {};
  const auto block = size / division.blocks;
  if (end <= begin || begin % block != 0 || end % block != 0) return {};
  return Division{.dim = division.dim, .blocks = (end - begin) / block};
}

Division after_permutation(const Division& division, at::IntArrayRef order) {
  const auto dims = static_cast<std::int64_t>(order.size());
  const auto found = std::find_if(order.begin(), order.end(),
                                  [&](std::int64_t from) { return from_front(from, dims) == division.dim; });
  auto there = division;
  there.dim = found - order.begin();
  return there;
}

}  // namespace hortator::parallel
