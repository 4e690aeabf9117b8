#pragma once

#include <string>

#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"

/// What ranks have parts of, in checkpoints: under the names and shapes that it has as a whole, so that any stage and
/// any number of ranks reads it. Nothing is gathered; each rank reads what it owns.
namespace hortator::accelerator {

/// All that `optimizer` remembers, under `prefix`; with fp32 copies of 16-bit parameters as "state/.../master".
void put_optimizer(checkpoint::Snapshot& snapshot, const std::string& prefix, const Training& training,
                   const step::OptimizerCore& optimizer, const step::ParameterNames& names);

/// The parameters and buffers of a model under `prefix`.
void put_model(checkpoint::Snapshot& snapshot, const std::string& prefix, const Training& training,
               const torch::nn::Module& module);

/// Throws where what the checkpoint has for `optimizer` does not fit it. Reads nothing.
void check_moments(const checkpoint::Reader& reader, const std::string& prefix, const step::OptimizerCore& optimizer,
                   const step::ParameterNames& names);

/// What the checkpoint has for a sharded optimizer, for step::load_optimizer. Throws where a parameter's shape was
/// another.
StateDict read_slices(const checkpoint::Reader& reader, const std::string& prefix, const step::OptimizerCore& optimizer,
                      const step::ParameterNames& names);

/// Of what is known of a sharded optimizer as a whole, this rank's parts; all of another's.
StateDict own_parts(const StateDict& whole, const step::OptimizerCore& optimizer, const step::ParameterNames& names);

/// Into `tensor`; of a sharded parameter this rank's part.
void read_parameter(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                    const at::Tensor& tensor);

/// After the parameters: their fp32 copies, from a checkpoint that has none from the parameters.
void restore_masters(const checkpoint::Reader& reader, const std::string& prefix, const step::OptimizerCore& optimizer,
                     const step::ParameterNames& names);

}  // namespace hortator::accelerator
