#pragma once

#include <cstddef>
#include <hortator/bigmodel/weights.hpp>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"
#include "weights/weight_source.hpp"

/// Assigns the tensors of a file to those of a model.
namespace hortator::weights {

/// A tensor of the model.
struct Wanted {
  std::string name = {};
  formats::TensorSpec spec = {};
  std::size_t first = 0;  ///< index of the first name of the same tensor: its own, or an earlier one
};

struct Matching {
  struct Pair {
    std::size_t wanted = 0;
    std::string stored = {};  ///< the name in the file
  };

  std::vector<Pair> loads = {};  ///< each tensor of the model once, in the order of the file
  std::vector<Pair> twins = {};  ///< further names of these tensors in the file; their values must be equal
  std::vector<std::string> missing = {};
  std::vector<std::string> unexpected = {};
  std::vector<std::string> unlike = {};  ///< tensors that cannot be loaded, with the reason
  std::vector<std::string> rules = {};   ///< of a renaming that would make most names match, as C++
};

/// Matches by names, shapes and types; reads no elements.
Matching match(const std::vector<Wanted>& wanted, const weights::WeightSource& source, const Renaming& rename);

/// Whether loading may convert `from` to `to`: between floating-point types, and to an integer type that holds all
/// values.
bool converts(at::ScalarType from, at::ScalarType to);

/// Throws one Error with everything that does not fit.
void require_match(const Matching& matching, const weights::WeightSource& source, bool strict);

/// One line about the tensors that are not loaded; empty if all are.
std::string omissions(const Matching& matching, const weights::WeightSource& source);

}  // namespace hortator::weights
