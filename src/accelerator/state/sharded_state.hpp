#pragma once

#include <functional>
#include <string>

#include "accelerator/state/divided_state.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "step/model/model_core.hpp"
#include "step/optimizer/optimizer_core.hpp"

/// Sharded tensors in checkpoints. They are stored under the names and shapes of the whole tensors, so that any ZeRO
/// stage and any number of ranks can read them. Nothing is gathered, except for parameters that are divided as well:
/// each rank writes and reads the slices it owns.
namespace hortator::accelerator {

class Training;

/// Adds the optimizer's state under `prefix`; fp32 copies of 16-bit parameters as "state/.../master".
void put_optimizer(SnapshotDraft& draft, const std::string& prefix, const Training& training,
                   const step::OptimizerCore& optimizer, const step::ParameterNames& names);

/// Adds the parameters and buffers of a model under `prefix`.
/// `only_trainable`: without its frozen parameters.
void put_model(SnapshotDraft& draft, const std::string& prefix, const Training& training, const step::ModelCore& model,
               bool only_trainable = false);

/// Adds a tensor that belongs to a parameter and has its shape; `mine`: of what this rank has of the parameter.
void put_like(SnapshotDraft& draft, const std::string& name, const Training& training, const at::Tensor& parameter,
              const at::Tensor& mine);
/// Reads what put_like() has written; only what belongs to this rank.
at::Tensor read_like(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                     const at::Tensor& parameter);

/// Throws if the checkpoint's state under `prefix` does not fit `optimizer`. Reads no tensors.
void check_moments(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                   const step::OptimizerCore& optimizer, const step::ParameterNames& names);

/// Reads an optimizer's state, for step::load_optimizer; of sharded and divided parameters only what this rank has.
/// Throws if a sharded parameter had another shape.
StateDict read_slices(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                      const step::OptimizerCore& optimizer, const step::ParameterNames& names);

/// Returns a function that cuts what this rank has out of whole moments of an optimizer of sharded or divided
/// parameters, and returns another optimizer's unchanged. Use it while the arguments live.
std::function<StateDict(const StateDict& whole)> own_parts(const Training& training,
                                                           const step::OptimizerCore& optimizer,
                                                           const step::ParameterNames& names);

/// Reads a parameter into `tensor`; of a sharded one only this rank's slice.
void read_parameter(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                    const at::Tensor& tensor);

/// Restores the fp32 copies of parameters; from the parameters if the checkpoint has none. Call it after these.
void restore_masters(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                     const step::OptimizerCore& optimizer, const step::ParameterNames& names);

}  // namespace hortator::accelerator
