#include "machine/races/byte_pattern.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using machine::PatternedRange;

namespace {

std::set<std::size_t> bytes_of(const PatternedRange& range) {
  std::set<std::size_t> bytes;
  const auto [width, period, is_exact] = range.pattern;
  for (auto byte = range.begin; byte < range.end; ++byte)
    if (period == 0 || (byte - range.begin) % period < width) bytes.insert(byte);
  return bytes;
}

/// All ranges in 24 bytes: whole ones, and blocks of one to three bytes with this period.
std::vector<PatternedRange> ranges_with(std::size_t period) {
  std::vector<PatternedRange> ranges;
  for (std::size_t begin = 0; begin < 8; ++begin) {
    for (std::size_t end = begin + 1; end <= 16; end += 3) ranges.push_back({begin, end});
    for (std::size_t width = 1; width <= 3; ++width)
      for (std::size_t blocks = 2; blocks <= 3; ++blocks)
        ranges.push_back({begin, begin + (blocks - 1) * period + width, {.width = width, .period = period}});
  }
  return ranges;
}

bool share(const PatternedRange& a, const PatternedRange& b) {
  const auto first = bytes_of(a);
  return std::ranges::any_of(bytes_of(b), [&](std::size_t byte) { return first.contains(byte); });
}

bool contains(const PatternedRange& all, const PatternedRange& part) {
  const auto bytes = bytes_of(all);
  return std::ranges::all_of(bytes_of(part), [&](std::size_t byte) { return bytes.contains(byte); });
}

PatternedRange range_of(const at::Tensor& tensor) {
  std::size_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    elements += static_cast<std::size_t>((tensor.size(i) - 1) * tensor.stride(i));
  const auto begin = static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
  return {begin, begin + elements * tensor.element_size(),
          machine::pattern_of(tensor.sizes(), tensor.strides(), tensor.element_size())};
}

std::set<std::size_t> bytes_of(const at::Tensor& tensor) {
  std::set<std::size_t> bytes;
  const auto numbers = tensor.flatten().contiguous();
  for (std::int64_t i = 0; i < numbers.numel(); ++i)
    for (std::size_t byte = 0; byte < sizeof(std::int32_t); ++byte)
      bytes.insert(static_cast<std::size_t>(numbers.const_data_ptr<std::int32_t>()[i]) * numbers.element_size() + byte);
  return bytes;
}

}  // namespace

TEST_CASE("ranges share bytes exactly where some byte is in both, whatever their periods") {
  for (const std::size_t period : {4, 5}) {
    for (const auto& a : ranges_with(4)) {
      for (const auto& b : ranges_with(period)) {
        if (machine::share_bytes(a, b) != share(a, b)) FAIL(a.begin << ' ' << a.end << ' ' << b.begin << ' ' << b.end);
        if (machine::covers(a, b) && !contains(a, b)) FAIL(a.begin << ' ' << a.end << ' ' << b.begin << ' ' << b.end);
        if (period == 4 && a.pattern.period == 0 && machine::covers(a, b) != (a.begin <= b.begin && b.end <= a.end))
          FAIL(a.begin << ' ' << a.end << ' ' << b.begin << ' ' << b.end);
      }
    }
  }
}

TEST_CASE("the bytes of a tensor are those of its elements, or all of its range") {
  const auto whole = at::arange(240, at::kInt).view({4, 5, 12});
  const std::vector<at::Tensor> views = {whole,
                                         whole.select(2, 3),
                                         whole.narrow(2, 2, 4),
                                         whole.narrow(1, 1, 2),
                                         whole.transpose(0, 2),
                                         whole.slice(2, 0, 12, 3),
                                         whole.narrow(0, 1, 1).expand({4, 5, 12})};
  for (const auto& view : views) {
    INFO(view.sizes() << ' ' << view.strides());
    CHECK(bytes_of(range_of(view)) == bytes_of(view));
  }
  // Two gaps; the larger is no multiple of the smaller: all bytes between.
  const auto irregular = at::arange(240, at::kInt).as_strided({3, 2, 1}, {25, 10, 1});
  CHECK(range_of(irregular).pattern.period == 0);
  CHECK_FALSE(range_of(irregular).pattern.is_exact);
}

TEST_CASE("of tensors whose rows pause, only what they certainly use counts") {
  const auto whole = at::arange(240, at::kInt).view({4, 5, 12});
  const auto left = range_of(whole.narrow(1, 0, 2).narrow(2, 0, 4));
  const auto right = range_of(whole.narrow(1, 2, 2).narrow(2, 0, 4));  // other rows of the same columns
  CHECK_FALSE(left.pattern.is_exact);
  CHECK_FALSE(machine::share_bytes(left, right));
  CHECK(machine::share_bytes(left, left));
  CHECK_FALSE(machine::covers(left, range_of(whole.narrow(1, 1, 1).narrow(2, 0, 1))));
  CHECK(machine::covers(range_of(whole), left));
}
