#pragma once

#include <cstddef>
#include <cstdint>

#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::checkpoint {

/// A contiguous range of a tensor's elements in one file.
struct StoredPiece {
  std::size_t file = 0;
  core::Range elements = {};
  std::int64_t offset = 0;  ///< byte in the file at which the first element starts

  friend bool operator==(const StoredPiece&, const StoredPiece&) = default;
};

/// The type and shape of the dataset that holds `piece` of a tensor of type and shape `whole`: whole rows if the piece
/// begins and ends at rows, otherwise one dimension of elements.
formats::TensorSpec stored_spec(const formats::TensorSpec& whole, const StoredPiece& piece);

}  // namespace hortator::checkpoint
