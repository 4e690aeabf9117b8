#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "exported/file/archive.hpp"
#include "exported/file/payload.hpp"
#include "exported/graph/program.hpp"

namespace hortator::exported {

/// A program of an archive with the list of its tensors.
struct StoredProgram {
  Program program;
  Payloads weights;    ///< parameters and persistent buffers: the state dict
  Payloads constants;  ///< other buffers, and tensors that are constants
};

/// Reads a program of an archive without its tensors. Throws ExportFault or formats::ZipFault.
StoredProgram read_stored_program(const Archive& archive, const std::string& name);

}  // namespace hortator::exported
