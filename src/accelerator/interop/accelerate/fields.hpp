#pragma once

#include <hortator/training/state_dict.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/read_keys.hpp"
#include "formats/torch/pickle/source.hpp"
#include "step/moments/optimizer_fields.hpp"

namespace hortator::accelerator {

/// Copies the values of a record's fields from a Python dict to `out`, under `prefix`/<their names>. Throws Error,
/// naming the file and the field, for a value of another type.
class PythonFields final : public step::FieldVisitor {
 public:
  PythonFields(const formats::PickleSource& file, const formats::PickleValue& dict, std::string prefix, StateDict& out)
      : file_(file), dict_(dict), prefix_(std::move(prefix)), out_(out) {}

  void field(std::string_view name, double& value) override;
  void field(std::string_view name, std::int64_t& value) override;
  void field(std::string_view name, bool& value) override;
  void field(std::string_view name, at::Tensor& value) override;
  void field(std::string_view name, std::deque<at::Tensor>& value) override;

  /// Names in the dict that no field has asked for.
  std::vector<std::string> unused() const;

 private:
  std::string path(std::string_view name) const;
  const formats::PickleValue* find(std::string_view name);
  const formats::PickleValue* find_number(std::string_view name);
  template <typename Number>
  Number need(std::string_view name, const std::optional<Number>& number) const;
  [[noreturn]] void misfit(std::string_view name, const formats::PickleValue& value) const;

  const formats::PickleSource& file_;
  const formats::PickleValue& dict_;
  std::string prefix_;
  StateDict& out_;
  core::ReadKeys used_;
};

/// Throws Error: the file's optimizer state does not fit, since `what`.
[[noreturn]] void refuse_state(const formats::PickleSource& file, const std::string& what, std::string why,
                               std::string hint = "");

}  // namespace hortator::accelerator
