#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

/// The operators of one step of a run, as each rank's file has them. share/python/record_operators.py writes the same.
namespace hortator::observe {

/// A tensor, in a few numbers.
struct TensorRecord {
  std::string type = {};  ///< "Float"
  std::vector<std::int64_t> sizes = {};
  std::uint64_t bits = 0;      ///< hash of the elements in their order
  std::uint64_t elements = 0;  ///< hash of the elements in any order: that of a whole is the sum of those of its parts
  double sum = std::numeric_limits<double>::quiet_NaN();   ///< NaN: the type has none, or an element is not finite
  double norm = std::numeric_limits<double>::quiet_NaN();  ///< the sum of absolute values

  std::int64_t count() const;
};

struct OperatorRecord {
  std::string name = {};     ///< "aten::addmm"; "gradient" and the like for tensors that were noted
  std::string path = {};     ///< the module whose parameter it reads; empty: none
  std::string near = {};     ///< `path`, or that of the last operator that had one, in backward that of its forward
  bool is_backward = false;  ///< computed by backward()
  bool is_of_parts = false;  ///< computed by the rule of an operator that was called with divided tensors
  int part = -1;             ///< the part of the batch, whichever rank computes it; -1: the run has none
  std::vector<TensorRecord> inputs = {};  ///< type, sizes and bits only
  std::vector<TensorRecord> results = {};
};

struct StepRecord {
  std::int64_t step = 0;
  int rank = 0;
  int ranks = 1;
  std::vector<OperatorRecord> operators = {};
};

/// "rank-00003.jsonl"
std::string record_file(int rank);

/// A header, a line for each operator, and a line that ends the file.
std::string to_text(const StepRecord& record);

/// Throws UsageError, which names `file`, for anything but a whole record.
StepRecord parse_step_record(const std::string& text, const std::filesystem::path& file);

}  // namespace hortator::observe
