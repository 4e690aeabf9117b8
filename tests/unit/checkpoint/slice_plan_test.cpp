#include "checkpoint/write/layout.hpp"

#include <map>
#include <numeric>

#include "support/catch.hpp"

using namespace hortator;
using checkpoint::TensorSize;
using checkpoint::TensorSlice;

namespace {

constexpr std::int64_t grain = 16;

/// How often each element of each tensor is written.
std::vector<std::vector<int>> coverage(const std::vector<TensorSize>& tensors, int ranks) {
  std::vector<std::vector<int>> written;
  for (const auto& tensor : tensors) written.emplace_back(static_cast<std::size_t>(tensor.elements), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto& [i, elements] : checkpoint::slices_of(tensors, ranks, rank, grain)) {
      for (auto e = elements.begin; e < elements.end; ++e) ++written.at(i).at(static_cast<std::size_t>(e));
    }
  }
  return written;
}

bool all_once(const std::vector<std::vector<int>>& written) {
  for (const auto& tensor : written) {
    for (const int times : tensor) {
      if (times != 1) return false;
    }
  }
  return true;
}

bool cuts_at_grains_only(const std::vector<TensorSize>& tensors, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto& [i, elements] : checkpoint::slices_of(tensors, ranks, rank, grain)) {
      const auto bytes = tensors[i].element_bytes;
      const bool whole = elements.size() == tensors[i].elements;
      if (!whole && tensors[i].elements * bytes <= grain) return false;
      if (elements.begin * bytes % grain != 0) return false;
      if (elements.end != tensors[i].elements && elements.end * bytes % grain != 0) return false;
    }
  }
  return true;
}

std::int64_t bytes_of(const std::vector<TensorSize>& tensors, const std::vector<TensorSlice>& slices) {
  std::int64_t bytes = 0;
  for (const auto& [i, elements] : slices) bytes += elements.size() * tensors[i].element_bytes;
  return bytes;
}

}  // namespace

TEST_CASE("every element is written exactly once, for all small cases") {
  const std::vector<std::int64_t> sizes = {0, 1, 3, 4, 5, 9, 23};
  for (const auto a : sizes) {
    for (const auto b : sizes) {
      for (const auto c : sizes) {
        for (const std::int64_t bytes : {1, 4, 16}) {
          const std::vector<TensorSize> tensors = {{a, bytes}, {b, 4}, {c, bytes}};
          for (int ranks = 1; ranks <= 9; ++ranks) {
            if (all_once(coverage(tensors, ranks)) && cuts_at_grains_only(tensors, ranks)) continue;
            FAIL_CHECK(a << " " << b << " " << c << " elements of " << bytes << ", 4, " << bytes << " bytes on "
                         << ranks << " ranks");
          }
        }
      }
    }
  }
}

TEST_CASE("without tensors there is nothing to write") { CHECK(checkpoint::slices_of({}, 3, 1).empty()); }

TEST_CASE("one large tensor is distributed in equal parts") {
  const std::vector<TensorSize> tensors = {{1 << 22, 4}};
  for (int rank = 0; rank < 4; ++rank) {
    const auto slices = checkpoint::slices_of(tensors, 4, rank);
    REQUIRE(slices.size() == 1);
    CHECK(slices[0] == TensorSlice{0, {rank * (1 << 20), (rank + 1) * (1 << 20)}});
  }
}

TEST_CASE("small tensors stay whole and are distributed by bytes") {
  const std::vector<TensorSize> tensors(1000, TensorSize{.elements = 3, .element_bytes = 4});
  for (int rank = 0; rank < 7; ++rank) {
    const auto slices = checkpoint::slices_of(tensors, 7, rank);
    CHECK(slices.size() >= 142);
    CHECK(slices.size() <= 143);
  }
}

TEST_CASE("no rank writes more than its part and two grains") {
  std::vector<TensorSize> tensors;
  for (int i = 0; i < 60; ++i) tensors.push_back({.elements = (i * 7919) % 97, .element_bytes = 1 << (i % 4)});
  for (int ranks = 1; ranks <= 20; ++ranks) {
    std::int64_t total = 0;
    for (const auto& tensor : tensors) total += tensor.elements * tensor.element_bytes;
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(bytes_of(tensors, checkpoint::slices_of(tensors, ranks, rank, grain)) <= total / ranks + 2 * grain);
    }
  }
}
