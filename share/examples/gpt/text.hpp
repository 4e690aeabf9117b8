#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
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

}  // namespace gpt
