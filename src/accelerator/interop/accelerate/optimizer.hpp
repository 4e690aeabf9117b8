#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/training/state_dict.hpp>
#include <string>
#include <vector>

#include "formats/torch/pickle/file.hpp"
#include "step/optimizer/optimizer_state.hpp"

namespace hortator::accelerator {

/// What the state dict of an optimizer of Python's is here: as step::save_optimizer() would have it of `optimizer`,
/// for step::load_optimizer().
///
/// Python numbers parameters in the order in which its optimizer got them. Where it was given their names, too, these
/// decide; else they are taken for those of `optimizer` one by one. `order` has the names of the model's file in
/// Python's order where the file keeps it, and where the optimizer has all parameters of one model: then another order
/// here is an error. Moments of another shape than their parameter's are refused when they are loaded.
///
/// Throws Error, naming the file and the entry, for what this optimizer has no place for; what it can do without goes
/// into `left`.
StateDict from_python(const formats::PickleFile& file, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names, const std::vector<std::string>& order,
                      std::vector<std::string>& left);

}  // namespace hortator::accelerator
