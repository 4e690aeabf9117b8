#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch/pickle/value.hpp"

/// The files that DeepSpeed's ZeRO writes: *_model_states.pt and *_optim_states.pt, as their pickles describe them.
namespace hortator::formats {

using NamedTensor = std::pair<std::string, PickledTensor>;
using NamedShape = std::pair<std::string, std::vector<std::int64_t>>;

/// What a file of the model says. ZeRO 3 leaves parameters out of `module`: they have no elements there.
struct ZeroModel {
  std::vector<NamedTensor> module = {};               ///< in Python's order
  std::vector<std::vector<NamedShape>> trained = {};  ///< parameters with fp32 values, by the array that holds them
  std::vector<NamedShape> frozen = {};                ///< whole shapes of parameters that are not trained
  std::map<std::string, PickledTensor> frozen_parts = {};  ///< this rank's part of them; ZeRO 1 and 2: all of them
  std::map<std::string, std::string> shared = {};          ///< further names of tied parameters, and the first ones
  std::set<std::string> buffers = {};
};

/// What an optimizer keeps for one array.
struct ZeroMoments {
  std::map<std::string, PickledTensor> arrays = {};  ///< "exp_avg": element by element
  PickleValue::Dict values = {};                     ///< "step": one for the whole array
};

/// What a rank's file of the optimizer says: its part of each flat array.
struct ZeroArrays {
  std::int64_t stage = 0;
  std::int64_t ranks = 0;                            ///< that the arrays are cut for
  std::vector<PickledTensor> masters = {};           ///< fp32 values of parameters
  std::vector<std::vector<std::int64_t>> gaps = {};  ///< elements after each parameter of an array; empty: none
  std::vector<ZeroMoments> moments = {};             ///< one for each array; fewer if the optimizer has not stepped
  std::vector<PickleValue> groups = {};              ///< the optimizer's options; their "params" are numbers of arrays
  bool is_elastic = false;  ///< moments are in the format of elastic checkpoints, which is not read
};

/// Both throw PickleFault for other values. Pure.
ZeroModel parse_zero_model(const PickleValue& value);
ZeroArrays parse_zero_arrays(const PickleValue& value);

/// The number of elements of a shape. Throws PickleFault for one that no memory holds. Pure.
std::int64_t elements_of(const std::vector<std::int64_t>& shape);

}  // namespace hortator::formats
