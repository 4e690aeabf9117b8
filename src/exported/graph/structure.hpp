#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace hortator::exported {

/// Field names of Python's named tuples, by the name of the type.
using NamedTuples = std::map<std::string, std::vector<std::string>>;

/// How Python nests the values that a model takes or returns: tuples, lists, dicts and objects such as transformers'
/// outputs.
class Structure {
 public:
  /// The text of a pytree specification, as torch.export writes it. Throws ExportFault for any other text.
  static Structure parse(const std::string& text, const NamedTuples& named_tuples);

  bool is_value() const { return is_value_; }  ///< no container
  std::size_t size() const;                    ///< the number of values
  /// Names of the values, such as "hidden_states.0": keys of dicts, fields of objects, and positions, joined by dots.
  /// Empty for a single value.
  std::vector<std::string> names() const;

  const std::vector<Structure>& children() const { return children_; }
  const std::vector<std::string>& keys() const { return keys_; }  ///< of the children

 private:
  friend class StructureReader;

  bool is_value_ = false;
  std::vector<std::string> keys_ = {};
  std::vector<Structure> children_ = {};
};

/// Names of the inputs of a model, of a structure of a tuple of arguments and a dict of keyword arguments.
/// `arguments` are the names of the positional ones, in order; more of them are named by their positions.
std::vector<std::string> input_names(const Structure& inputs, const std::vector<std::string>& arguments);

}  // namespace hortator::exported
