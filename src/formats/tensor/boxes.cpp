#include "formats/tensor/boxes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace hortator::formats {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

class BoxCutter {
 public:
  explicit BoxCutter(std::span<const std::int64_t> shape) : shape_(shape) {}

  /// Cuts `elements`, counted within the part of the tensor that `prefix` selects in the first dimensions.
  void cut(std::vector<std::int64_t> prefix, core::Range elements) {
    if (elements.size() <= 0) return;
    const auto dimension = prefix.size();
    const auto row = product(shape_.subspan(dimension + 1));
    const auto first_whole = (elements.begin + row - 1) / row;
    const auto end_whole = elements.end / row;
    if (elements.begin % row != 0) within(prefix, elements.begin / row, row, elements);
    if (first_whole < end_whole) add(prefix, {first_whole, end_whole});
    if (elements.end % row != 0 && end_whole >= first_whole) within(prefix, end_whole, row, elements);
  }

  std::vector<TensorBlock> boxes() && { return std::move(boxes_); }

 private:
  void within(std::vector<std::int64_t> prefix, std::int64_t index, std::int64_t row, core::Range elements) {
    prefix.push_back(index);
    cut(prefix, {std::max(elements.begin - index * row, std::int64_t{0}), std::min(elements.end - index * row, row)});
  }

  void add(const std::vector<std::int64_t>& prefix, core::Range rows) {
    TensorBlock box = {.begin = prefix, .count = std::vector<std::int64_t>(prefix.size(), 1)};
    box.begin.push_back(rows.begin);
    box.count.push_back(rows.size());
    box.begin.resize(shape_.size(), 0);
    box.count.insert(box.count.end(), shape_.begin() + static_cast<std::ptrdiff_t>(box.count.size()), shape_.end());
    boxes_.push_back(std::move(box));
  }

  std::span<const std::int64_t> shape_;
  std::vector<TensorBlock> boxes_;
};

}  // namespace

std::int64_t TensorBlock::elements() const { return product(count); }

std::vector<TensorBlock> boxes_of(std::span<const std::int64_t> shape, core::Range elements) {
  if (shape.empty()) return elements.size() > 0 ? std::vector<TensorBlock>{TensorBlock{}} : std::vector<TensorBlock>{};
  BoxCutter cutter(shape);
  cutter.cut({}, elements);
  return std::move(cutter).boxes();
}

}  // namespace hortator::formats
