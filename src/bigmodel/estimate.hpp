#pragma once

#include <cstdint>
#include <hortator/bigmodel/big_models.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bigmodel/module_tree.hpp"

/// Memory estimates: for a model held in a type, and for training on a number of ranks.
namespace hortator::bigmodel {

/// An element type of a model.
struct EstimateType {
  std::string_view name;
  int bits = 0;             ///< of an element
  bool is_mixed = false;    ///< training computes in it, with float32 master parameters
  bool trains = false;      ///< whether models are trained in it, by Accelerate's rule
  bool trains_here = true;  ///< whether Hortator trains in it too
};
const std::vector<EstimateType>& estimate_types();
/// Throws UsageError, with a suggestion, for an unknown name.
const EstimateType& estimate_type(std::string_view name);

/// Memory for training with Adam, by the rule of Accelerate's estimate-memory.
struct TrainingBytes {
  Bytes model = 0;
  Bytes gradients = 0;  ///< with mixed precision including 16-bit ones
  Bytes optimizer = 0;
  Bytes step = 0;  ///< Accelerate's number for a step, which excludes memory held across steps

  Bytes held() const { return model + gradients + optimizer; }  ///< held at once, before the step
};
/// For a model of `model` bytes in float32. Nothing for types that models are not trained in.
std::optional<TrainingBytes> training_bytes(Bytes model, const EstimateType& type);

struct EstimateOptions {
  std::vector<std::string> types = {"float32", "float16", "bfloat16", "int8", "int4"};
  std::string training_type = "float32";  ///< for the table of ranks
  int ranks = 1;
  std::int64_t batch_size = 0;       ///< of each rank; 0 excludes activations
  std::int64_t sequence_length = 1;  ///< tokens of a sample
  std::vector<std::string> no_split_module_classes = {};
};

/// The model in one type.
struct EstimateRow {
  std::string_view type = {};
  Bytes largest_layer = 0;
  Bytes total = 0;
  std::optional<TrainingBytes> training = {};
};

/// One way to shard and offload training with Adam, and the memory that each rank needs.
struct TrainingLayout {
  int zero_stage = 0;
  bool offload_optimizer = false;
  bool offload_parameters = false;
  Bytes device = 0;
  Bytes host = 0;
};

struct Estimate {
  std::int64_t parameters = 0;  ///< elements of all tensors
  Bytes stored = 0;             ///< in the tensors' own types
  Bytes in_float32 = 0;         ///< floating-point tensors as float32
  std::vector<std::string> largest_layers = {};
  std::vector<EstimateRow> rows = {};
  std::string training_type = {};
  int ranks = 1;
  Bytes activations = 0;  ///< of a rank; 0 if not requested
  std::vector<TrainingLayout> layouts = {};
};

Estimate estimate(const ModuleTree& tree, const EstimateOptions& options);

/// Text for the terminal; `source` is the name of the model.
std::string table(const Estimate& estimate, const std::string& source);
std::string to_json(const Estimate& estimate, const std::string& source);

/// Builds the tree of tensors with dotted names.
ModuleTree tree_of_names(const std::vector<std::pair<std::string, formats::TensorSpec>>& tensors);

}  // namespace hortator::bigmodel
