#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exported/graph/program.hpp"

namespace hortator::exported {

/// Shapes that the export allows for the inputs of a model.
class InputCheck {
 public:
  /// `names` are those of the program's inputs of the kind `user`, in order.
  InputCheck(const Program& program, const std::vector<std::string>& names);

  /// Throws UsageError, naming the input and its dimension, for tensors that the graph would compute something else
  /// with than the Python model. Types may differ in their precision only.
  void require_allowed(const std::vector<at::Tensor>& inputs) const;

 private:
  struct Dimension {
    Expression size;
    std::optional<SizeRange> range;
  };
  struct Input {
    std::string name;
    std::optional<c10::ScalarType> type = {};  ///< nothing: a number
    std::vector<Dimension> shape = {};
  };
  void require_shape(const Input& input, const at::Tensor& tensor, Symbols& symbols) const;
  void require_size(const Input& input, std::size_t dimension, std::int64_t size, Symbols& symbols) const;
  void require_guards(const std::vector<at::Tensor>& inputs) const;
  std::optional<std::int64_t> guarded(const std::vector<at::Tensor>& inputs, const std::string& path,
                                      std::optional<std::int64_t> dimension) const;
  static std::string shape_text(const Input& input);
  std::vector<std::string> expected_names() const;

  std::vector<Input> inputs_;
  std::map<std::string, std::size_t, std::less<>> places_;  ///< of the inputs, by their names in guards
  std::vector<std::string> guards_;
};

}  // namespace hortator::exported
