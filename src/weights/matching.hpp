#pragma once

#include <cstddef>
#include <hortator/bigmodel/weights.hpp>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"
#include "weights/weight_source.hpp"

/// Which tensor of a file goes into which of a model.
namespace hortator::weights {

struct Wanted {
  std::string name = {};
  formats::TensorSpec spec = {};
  std::size_t first = 0;  ///< the first name of the same tensor: itself, or before it
};

struct Matching {
  struct Pair {
    std::size_t wanted = 0;
    std::string stored = {};  ///< as the file has it
  };

  std::vector<Pair> loads = {};  ///< each tensor once, in the order of the file
  std::vector<Pair> twins = {};  ///< further names of these that the file has as well: the values must be the same
  std::vector<std::string> missing = {};
  std::vector<std::string> unexpected = {};
  std::vector<std::string> unlike = {};  ///< what can never be loaded, and why
  std::vector<std::string> rules = {};   ///< of a renaming that would make names fit, as one writes it
};

/// Reads no elements.
Matching match(const std::vector<Wanted>& wanted, const weights::WeightSource& source, const Renaming& rename);

/// Whether values of one type become the other without a loss that nobody asked for: between floating-point types, and
/// to whole numbers that hold them all.
bool converts(at::ScalarType from, at::ScalarType to);

/// Throws what does not fit, all of it in one error.
void require_match(const Matching& matching, const weights::WeightSource& source, bool strict);

/// What was left out, in a line; empty when nothing was.
std::string omissions(const Matching& matching, const weights::WeightSource& source);

}  // namespace hortator::weights
