#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/read/reader.hpp"
#include "support/catch.hpp"

/// The tensors of checkpoints.
namespace hortator::test {

inline std::map<std::string, at::Tensor> tensors_in(const std::filesystem::path& folder) {
  const checkpoint::Reader reader(folder);
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, spec] : reader.tensors()) all.emplace(name, reader.read(name));
  return all;
}

inline void check_equal(const std::map<std::string, at::Tensor>& found,
                        const std::map<std::string, at::Tensor>& expected) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, values] : expected) {
    INFO(name);
    REQUIRE(found.contains(name));
    CHECK(at::equal(found.at(name), values));
  }
}

}  // namespace hortator::test
