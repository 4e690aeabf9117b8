#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "checkpoint/read/reader.hpp"
#include "formats/torch/pickle/value.hpp"

/// Converts a checkpoint to the files that save_state() of Hugging Face Accelerate would have written.
namespace hortator::accelerator {

/// A file for torch.load. The storages of its tensors are named as the tensors of the checkpoint, or as those here.
struct PythonFile {
  std::string name;
  formats::PickleValue value;
  std::map<std::string, at::Tensor> tensors = {};
};

/// The state of an optimizer, a schedule, the loss scaler, a registered object, or of a rank's random numbers. Each
/// throws UsageError for what Python cannot represent.
PythonFile optimizer_for_python(const checkpoint::Reader& reader, std::size_t index);
PythonFile schedule_for_python(const checkpoint::Reader& reader, std::size_t index);
PythonFile scaler_for_python(const checkpoint::Reader& reader);
PythonFile object_for_python(const checkpoint::Reader& reader, const std::string& object, std::size_t index);
PythonFile random_for_python(const checkpoint::Reader& reader, int rank);

/// The names of registered objects, which are numbered in the order of the alphabet.
std::vector<std::string> objects_in(const checkpoint::Reader& reader);
/// What the checkpoint holds and Python's folder does not, one line each.
std::vector<std::string> left_out_for_python(const checkpoint::Reader& reader);

}  // namespace hortator::accelerator
