#pragma once

#include <hortator/training/state_dict.hpp>

#include "formats/torch/pickle/file.hpp"

namespace hortator::accelerator {

/// Converts the state dict of a Python schedule for a schedule whose own state is `like`: LambdaLR and similar ones,
/// single or several in a SequentialLR or a ChainedScheduler, or ReduceLROnPlateau. Throws Error, naming the file, if
/// something is missing.
StateDict schedule_from_python(const formats::PickleFile& file, const StateDict& like);

/// Converts the state of torch's GradScaler.
StateDict scaler_from_python(const formats::PickleFile& file);

/// Converts all numbers, strings and tensors of any state dict; those in containers get names like "moments/0".
StateDict object_from_python(const formats::PickleFile& file);

}  // namespace hortator::accelerator
