#pragma once

#include <hortator/training/state_dict.hpp>

#include "formats/torch/pickle/file.hpp"

namespace hortator::accelerator {

/// What the state dict of a schedule of Python's is here, for a schedule whose own state is `like`: LambdaLR and its
/// likes, alone or several in a SequentialLR or a ChainedScheduler, or ReduceLROnPlateau. Throws Error, naming the
/// file, for what lacks something.
StateDict schedule_from_python(const formats::PickleFile& file, const StateDict& like);

/// The scale of the loss, of torch's GradScaler.
StateDict scaler_from_python(const formats::PickleFile& file);

/// Numbers, texts and tensors of any state dict; those in containers have names like "moments/0". None is left out.
StateDict object_from_python(const formats::PickleFile& file);

}  // namespace hortator::accelerator
