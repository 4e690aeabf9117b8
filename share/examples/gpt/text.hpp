#pragma once

#include <ATen/core/Tensor.h>
#include <torch/data/example.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace gpt {

/// All text that `paths` name: files as they are, folders with all text files below them (hidden ones left out), in the
/// order of their names: every rank that sees the same files makes the same text of them. A token is a byte.
struct Text {
  at::Tensor training;  ///< uint8 [bytes]
  at::Tensor held_out;  ///< every tenth block of the text, never trained on
  std::size_t files = 0;

  static Text read(const std::vector<std::filesystem::path>& paths);
};

/// What to read when nothing is named: the documents and sources of the repository in which this program was built;
/// empty elsewhere.
std::vector<std::filesystem::path> own_sources();

/// A data set of `count` windows of `context` tokens each, evenly spaced over a text; the target of each token is the
/// next one.
class Windows {
 public:
  using Example = torch::data::Example<>;

  Windows(at::Tensor text, std::int64_t context, std::int64_t count);
  /// Side by side, each token once.
  Windows(const at::Tensor& text, std::int64_t context);

  std::size_t size() const { return static_cast<std::size_t>(count_); }
  /// data and target [indices.size(), context], int64: a loader asks for whole batches where it can
  Example get_batch(std::span<const std::int64_t> indices) const;

 private:
  std::int64_t start(std::int64_t index) const;

  at::Tensor text_;
  std::int64_t context_;
  std::int64_t count_;
};

}  // namespace gpt
