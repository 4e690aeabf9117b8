#pragma once

#include <cstdint>
#include <hortator/bigmodel/big_models.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bigmodel/module_tree.hpp"

/// What a model takes: to hold it in some type, and to train it over some ranks.
namespace hortator::bigmodel {

/// A type that a model can be held in.
struct EstimateType {
  std::string_view name;
  int bits = 0;           ///< of an element
  bool is_mixed = false;  ///< training computes in it, with master parameters in float32
  bool trains = false;
};
const std::vector<EstimateType>& estimate_types();
/// UsageError, with the nearest one, for a name that is none of them.
const EstimateType& estimate_type(std::string_view name);

/// What training with Adam takes, for a model of so many bytes in float32. The rule is the reference's.
struct TrainingBytes {
  Bytes model = 0;
  Bytes gradients = 0;  ///< with mixed precision those in 16 bits, too
  Bytes optimizer = 0;
  Bytes step = 0;  ///< what the reference says of a step; it leaves out what stays beside it

  Bytes held() const { return model + gradients + optimizer; }  ///< at the same time, before the step
};
/// Nothing for types that nobody trains in.
std::optional<TrainingBytes> training_bytes(Bytes model, const EstimateType& type);

struct EstimateOptions {
  std::vector<std::string> types = {"float32", "float16", "bfloat16", "int8", "int4"};
  std::string training_type = "float32";  ///< of the table over ranks
  int ranks = 1;
  std::int64_t batch_size = 0;       ///< of each rank; 0: activations are not counted
  std::int64_t sequence_length = 1;  ///< tokens of a sample
  std::vector<std::string> no_split_module_classes = {};
};

/// The model held in one type.
struct EstimateRow {
  std::string_view type = {};
  Bytes largest_layer = 0;
  Bytes total = 0;
  std::optional<TrainingBytes> training = {};
};

/// One way to spread training with Adam over the ranks, and what each of them takes.
struct Spread {
  int zero_stage = 0;
  bool offload_optimizer = false;
  bool offload_parameters = false;
  Bytes device = 0;
  Bytes host = 0;
};

struct Estimate {
  std::int64_t parameters = 0;  ///< elements of all tensors
  Bytes stored = 0;             ///< as the tensors are
  Bytes in_float32 = 0;         ///< floating-point tensors as float32
  std::vector<std::string> largest_layers = {};
  std::vector<EstimateRow> rows = {};
  std::string training_type = {};
  int ranks = 1;
  Bytes activations = 0;  ///< of a rank; 0: not asked for
  std::vector<Spread> spreads = {};
};

Estimate estimate(const ModuleTree& tree, const EstimateOptions& options);

/// For people; `source` is what was estimated.
std::string table(const Estimate& estimate, const std::string& source);
std::string to_json(const Estimate& estimate, const std::string& source);

/// The tree that dotted names of tensors make.
ModuleTree tree_of_names(const std::vector<std::pair<std::string, formats::TensorSpec>>& tensors);

}  // namespace hortator::bigmodel
