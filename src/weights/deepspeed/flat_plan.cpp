#include "weights/deepspeed/flat_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/text/text.hpp"

namespace hortator::weights {
namespace {

[[noreturn]] void refuse_length(std::int64_t needed, std::int64_t held) {
  throw FlatFault(text::concat("its arrays have ", held, " elements, its tensors need ", needed));
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) throw FlatFault("its tensors have more elements than memory has");
  return a;
}

core::Range overlap(const core::Range& a, const core::Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// Adds the slices of a tensor's `elements`. The first element is number `at` in the rank's arrays together.
void add_slices(std::vector<FlatSlice>& slices, const std::vector<std::int64_t>& arrays, std::size_t rank,
                std::int64_t at, const core::Range& elements) {
  std::int64_t begin = 0;
  for (std::size_t array = 0; array < arrays.size(); begin += arrays[array++]) {
    const auto here = overlap({begin, begin + arrays[array]}, {at, sum(at, elements.size())});
    if (here.size() <= 0) continue;
    slices.push_back({.rank = rank,
                      .array = array,
                      .first = here.begin - begin,
                      .elements = {elements.begin + here.begin - at, elements.begin + here.end - at}});
  }
}

}  // namespace

FlatSlices cut_array(const FlatLengths& lengths, std::size_t array, const std::vector<std::int64_t>& sizes,
                     const std::vector<std::int64_t>& gaps) {
  if (!gaps.empty() && gaps.size() != sizes.size()) throw FlatFault("its paddings are not one for each tensor");
  FlatSlices all;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto& slices = all.emplace_back();
    std::int64_t begin = 0;
    for (std::size_t rank = 0; rank < lengths.size(); begin += lengths[rank++][array]) {
      const auto here = overlap({begin, begin + lengths[rank][array]}, {at, sum(at, sizes[i])});
      if (here.size() <= 0) continue;
      slices.push_back(
          {.rank = rank, .array = array, .first = here.begin - begin, .elements = {here.begin - at, here.end - at}});
    }
    at = sum(at, sum(sizes[i], gaps.empty() ? 0 : gaps[i]));
  }
  std::int64_t held = 0;
  for (const auto& rank : lengths) held += rank[array];
  const auto last_gap = gaps.empty() ? 0 : gaps.back();
  const auto max_padding = 2 * static_cast<std::int64_t>(lengths.size());
  if (held < at - last_gap || held > sum(at, max_padding)) refuse_length(at - last_gap, held);
  return all;
}

FlatSlices cut_tensors(const FlatLengths& lengths, const std::vector<std::int64_t>& sizes) {
  const auto ranks = static_cast<std::int64_t>(lengths.size());
  FlatSlices all;
  std::int64_t at = 0;
  for (const auto size : sizes) {
    auto& slices = all.emplace_back();
    const auto part = core::ceil_div(size, ranks);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const core::Range own{std::min(rank * part, size), std::min((rank + 1) * part, size)};
      const auto number = static_cast<std::size_t>(rank);
      add_slices(slices, lengths[number], number, at, own);
    }
    at = sum(at, part);
  }
  for (const auto& arrays : lengths) {
    const auto held = std::accumulate(arrays.begin(), arrays.end(), std::int64_t{0});
    if (held != at) refuse_length(at, held);
  }
  return all;
}

}  // namespace hortator::weights
