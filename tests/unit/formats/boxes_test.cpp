#include "formats/tensor/tensor_ranges.hpp"

#include "support/catch.hpp"

using namespace hortator;

namespace {

/// The elements of a box, counted in row-major order.
void visit(const formats::TensorBlock& box, const std::vector<std::int64_t>& shape, std::size_t dimension,
           std::int64_t before, std::vector<std::int64_t>& seen) {
  if (dimension == shape.size()) return seen.push_back(before);
  for (std::int64_t i = 0; i < box.count[dimension]; ++i)
    visit(box, shape, dimension + 1, before * shape[dimension] + box.begin[dimension] + i, seen);
}

bool covers(const std::vector<std::int64_t>& shape, core::Range run) {
  std::vector<std::int64_t> seen;
  for (const auto& box : formats::boxes_of(shape, run)) visit(box, shape, 0, 0, seen);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] != run.begin + static_cast<std::int64_t>(i)) return false;
  }
  return static_cast<std::int64_t>(seen.size()) == run.size();
}

}  // namespace

TEST_CASE("the boxes of any range, in order, are the range") {
  const std::vector<std::vector<std::int64_t>> shapes = {{24}, {4, 6}, {2, 3, 4}, {2, 1, 3, 4}, {1, 24}, {24, 1}};
  for (const auto& shape : shapes) {
    for (std::int64_t begin = 0; begin <= 24; ++begin) {
      for (std::int64_t end = begin; end <= 24; ++end) {
        if (!covers(shape, {begin, end})) FAIL_CHECK(shape.size() << " dimensions, " << begin << " to " << end);
      }
    }
  }
  CHECK(formats::boxes_of(std::vector<std::int64_t>{}, {0, 1}).size() == 1);
  CHECK((formats::boxes_of(std::vector<std::int64_t>{4, 6}, {0, 24}) ==
         std::vector<formats::TensorBlock>{{{0, 0}, {4, 6}}}));
}
