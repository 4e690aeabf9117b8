#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/operators/operator_record.hpp"

namespace hortator::observe {

/// The operators so far, and the modules that they belong to. Any thread may add.
class OperatorLog {
 public:
  explicit OperatorLog(const std::vector<std::pair<std::string, at::Tensor>>& parameters);

  /// The module whose parameter a tensor is, or shares memory with; empty: none.
  std::string path_of(const at::Tensor& tensor) const;
  /// Adds an operator, and gives it what its neighbours tell. `forward`: the number of the forward operator to which
  /// this one of backward belongs, `own`: that of this one of forward; -1: none.
  void add(OperatorRecord record, std::int64_t forward, std::int64_t own);
  /// Adds a record as it is.
  void add_noted(OperatorRecord record);
  std::size_t size() const;
  void begin_part(int number);
  void begin_update();
  std::vector<OperatorRecord> take();

 private:
  struct Elements {
    std::int64_t begin, end;  ///< elements of the storage
    std::string path;
  };

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::vector<Elements>> parameters_;  ///< by storage
  std::vector<OperatorRecord> records_;
  std::unordered_map<std::int64_t, std::string> near_of_;  ///< by number of the forward operator
  std::string near_;
  int part_ = -1;
  bool is_update_ = false;
};

}  // namespace hortator::observe
