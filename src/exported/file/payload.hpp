#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "exported/file/archive.hpp"

namespace hortator::exported {

/// A parameter, buffer or constant of an archive: a view of a record.
struct Payload {
  std::string record = {};
  bool is_parameter = false;
  bool requires_grad = false;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes = {};
  std::vector<std::int64_t> strides = {};
  std::int64_t offset = 0;  ///< in elements

  friend bool operator==(const Payload&, const Payload&) = default;
};

using Payloads = std::map<std::string, Payload, std::less<>>;

/// Reads the JSON text of a payload configuration, whose records are in `folder`. Throws ExportFault for tensors that
/// do not lie within their records, and for those that Python's pickle is needed for.
Payloads parse_payloads(std::string_view json, const std::string& folder, const Archive& archive);

/// Reads tensors of an archive. Tensors of the same record share memory, as they did in Python.
class PayloadReader {
 public:
  explicit PayloadReader(const Archive& archive) : archive_(&archive) {}  ///< must outlive this

  at::Tensor read(const Payload& payload);

 private:
  const Archive* archive_;
  std::map<std::string, at::Tensor> records_;  ///< that were read, as bytes
};

}  // namespace hortator::exported
