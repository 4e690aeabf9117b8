#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <hortator/training/state_dict.hpp>
#include <string>
#include <vector>

#include "formats/torch/pickle/source.hpp"
#include "step/moments/optimizer_state.hpp"

namespace hortator::accelerator {

/// Converts the state dict of a Python optimizer to what step::save_optimizer() would return for `optimizer`, for
/// step::load_optimizer().
///
/// Python numbers parameters in the order in which its optimizer got them. If it also got their names, these decide;
/// otherwise parameters are matched one by one. `order` has the names of the model's file in Python's order, if the
/// file keeps it and the optimizer has all parameters of one model: another order here is then an error. Moments whose
/// shape differs from their parameter's are refused when they are loaded.
///
/// `own` is called with the whole moments of one parameter after the other, and returns what this rank keeps of them.
///
/// Throws Error, naming the file and the entry, for entries that this optimizer cannot represent; entries that it does
/// not need are added to `left`.
StateDict from_python(const formats::PickleSource& file, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names, const std::vector<std::string>& order,
                      const std::function<StateDict(const StateDict&)>& own, std::vector<std::string>& left);

}  // namespace hortator::accelerator
