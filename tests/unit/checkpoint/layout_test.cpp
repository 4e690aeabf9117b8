#include "checkpoint/write/layout.hpp"

#include <ATen/ATen.h>

#include <map>

#include "support/catch.hpp"

using namespace hortator;
using checkpoint::Layout;

namespace {

checkpoint::StateOutline outline(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors) {
  checkpoint::StateOutline made;
  for (const auto& [name, shape] : tensors)
    made.push_back({.name = name, .content = formats::TensorSpec{.type = at::kFloat, .shape = shape}});
  made.push_back({.name = "value", .content = std::int64_t{3}});
  return made;
}

std::vector<checkpoint::StateOutline> owns(std::size_t ranks) {
  std::vector<checkpoint::StateOutline> all;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    all.push_back(outline({{"rng", {static_cast<std::int64_t>(rank) + 1}}}));
  return all;
}

/// Checks that every element is in one piece, that pieces do not overlap in a file, and that each element is written
/// once, to its rank's file.
void check_sound(const Layout& layout) {
  std::vector<std::map<std::int64_t, std::int64_t>> taken(layout.files.size());
  for (const auto& tensor : layout.tensors) {
    std::int64_t next = 0;
    for (const auto& piece : tensor.pieces) {
      CHECK(piece.elements.begin == next);
      next = piece.elements.end;
      taken[piece.file][piece.offset] = piece.offset + piece.elements.size() * 4;
    }
    CHECK(next == tensor.spec.elements());
  }
  for (std::size_t file = 0; file < taken.size(); ++file) {
    auto end = layout.files[file].data_begin;
    for (const auto& [from, to] : taken[file]) {
      CHECK(from >= end);
      end = to;
    }
    CHECK(end == layout.files[file].end);
  }
  std::vector<std::int64_t> written(layout.tensors.size(), 0);
  for (std::size_t rank = 0; rank < layout.file_of.size(); ++rank) {
    for (const auto& slice : slices_of_rank(layout, static_cast<int>(rank))) {
      written[slice.tensor] += slice.elements.size();
      const auto& pieces = layout.tensors[slice.tensor].pieces;
      const auto home = std::find_if(pieces.begin(), pieces.end(), [&](const auto& piece) {
        return piece.elements.begin <= slice.elements.begin && slice.elements.end <= piece.elements.end;
      });
      REQUIRE(home != pieces.end());
      CHECK(home->file == layout.file_of[rank]);
      CHECK(offset_of(layout, slice) == home->offset + 4 * (slice.elements.begin - home->elements.begin));
    }
  }
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(written[i] == layout.tensors[i].spec.elements());
}

}  // namespace

TEST_CASE("every layout has an offset and a writing rank for each element") {
  const auto common =
      outline({{"a/empty", {0, 3}}, {"a/large", {3000, 2000}}, {"b", {7}}, {"c/huge", {9, 1 << 20}}, {"d", {}}});
  for (const auto& file_of : std::vector<std::vector<std::size_t>>{
           {0}, {0, 0}, {0, 1}, {0, 0, 1}, {0, 1, 0, 1}, {1, 0, 2}, {0, 0, 0, 1, 1, 1, 2}, {0, 1, 2, 3, 4, 5, 6}}) {
    const auto layout = make_layout(common, owns(file_of.size()), file_of);
    INFO(file_of.size() << " ranks, " << layout.files.size() << " files");
    check_sound(layout);
    CHECK(layout.common_tensors == 5);
    CHECK(hash(layout) == hash(make_layout(common, owns(file_of.size()), file_of)));
    if (layout.files.size() == 1) {
      for (const auto& tensor : layout.tensors) CHECK(tensor.pieces.size() <= 1);
    }
  }
  CHECK(hash(make_layout(common, owns(2), {0, 0})) != hash(make_layout(common, owns(2), {0, 1})));
}

TEST_CASE("a piece of a tensor keeps its rows if it can") {
  const formats::TensorSpec whole = {.type = at::kFloat, .shape = {4, 5, 2}};
  CHECK(checkpoint::stored_spec(whole, {.elements = {0, 40}}) == whole);
  CHECK(checkpoint::stored_spec(whole, {.elements = {10, 30}}).shape == std::vector<std::int64_t>{2, 5, 2});
  CHECK(checkpoint::stored_spec(whole, {.elements = {11, 31}}).shape == std::vector<std::int64_t>{20});
  CHECK(checkpoint::stored_spec(whole, {.elements = {10, 25}}).shape == std::vector<std::int64_t>{15});
}
