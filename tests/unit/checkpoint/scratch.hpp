#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <hortator/error.hpp>
#include <string>

#include "checkpoint/write/save.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/collectives.hpp"

/// Helpers for the tests of checkpoints.
namespace hortator::testing {

/// An empty folder that all ranks see. @collective
inline std::filesystem::path scratch(const mpi::Communicator& comm, const std::string& name) {
  const auto folder = std::filesystem::absolute(name);
  mpi::barrier(comm);
  if (comm.rank() == 0) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  mpi::barrier(comm);
  return folder;
}

inline std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

/// The text of the error that `work` throws; empty when it throws none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string read_file(const std::filesystem::path& file) {
  return formats::read_text(file, std::uint64_t{1} << 40);
}

inline void write_file(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Whether bytes, type and shape are equal: NaN equals itself.
inline bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  const auto left = a.contiguous();
  const auto right = b.contiguous();
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
         (left.numel() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

/// A state that is the same on every rank: numbers, texts, a tensor large enough to be cut, small ones, an empty one,
/// one with strides, a scalar.
inline checkpoint::Snapshot snapshot(int rank, int variant) {
  checkpoint::Snapshot made;
  made.common.put("epoch", variant);
  made.common.put("models/0/fc1.weight", at::arange(900'000).to(at::kFloat).reshape({900, 1000}).add(variant));
  made.common.put("models/0/fc1.bias", at::arange(7).to(at::kBFloat16).add(variant));
  made.common.put("models/0/empty", at::empty({0, 3}));
  made.common.put("models/0/strided", at::arange(600'000).reshape({600, 1000}).t().add(variant));
  made.common.put("optimizers/0/rate", 0.1 * variant);
  made.common.put("optimizers/0/step", at::scalar_tensor(variant, at::kDouble));
  made.common.put("name", "variant " + std::to_string(variant));
  made.own.put("rng/cpu", at::full({rank + 3}, rank, at::kByte));
  made.own.put("rng/seed", 100 * variant + rank);
  return made;
}

}  // namespace hortator::testing
