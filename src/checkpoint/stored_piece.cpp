#include "checkpoint/stored_piece.hpp"

namespace hortator::checkpoint {

formats::TensorSpec stored_spec(const formats::TensorSpec& whole, const StoredPiece& piece) {
  const auto elements = piece.elements.size();
  if (elements == whole.elements()) return whole;
  const auto row = whole.elements() / whole.shape.front();
  if (piece.elements.begin % row != 0 || elements % row != 0) return {.type = whole.type, .shape = {elements}};
  auto rows = whole;
  rows.shape.front() = elements / row;
  return rows;
}

}  // namespace hortator::checkpoint
