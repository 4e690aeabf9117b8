#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <vector>

namespace gpt {

/// The text of `paths`: files, and folders with all text files below them except hidden ones, sorted by name. Every
/// rank that sees the same files gets the same text. A token is a byte.
struct Text {
  at::Tensor training;  ///< uint8 [bytes]
  at::Tensor held_out;  ///< every tenth block of the text, for evaluation only
  std::size_t files = 0;

  static Text read(const std::vector<std::filesystem::path>& paths);
};

/// The default text: documents and sources of the repository in which this program was built; empty outside of it.
std::vector<std::filesystem::path> own_sources();

}  // namespace gpt
