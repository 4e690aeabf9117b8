#pragma once

#include <hortator/error.hpp>
#include <memory>
#include <string>
#include <vector>

#include "comm/nccl/backend.hpp"
#include "host_device.hpp"
#include "mock_nccl.hpp"
#include "support/catch.hpp"

/// The nccl back end for the communicator's suites, and what its own tests share.
namespace hortator::test {

inline const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = {"nccl", "a part of nccl"};
  return names;
}

inline std::unique_ptr<comm::Communicator> make_nccl(std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  return comm::make_nccl_communicator(mpi::Communicator::world(), c10::kCPU, patience);
}

inline std::unique_ptr<comm::Communicator> make_backend(const std::string& name) {
  auto whole = make_nccl();
  return name == "nccl" ? std::move(whole) : whole->split(0, whole->rank());
}

/// A test in which NCCL must not have been misused.
struct CleanMock {
  CleanMock() { reset_mock_nccl(); }
  ~CleanMock() {
    for (const auto& violation : mock_nccl().violations) UNSCOPED_INFO(violation);
    CHECK(mock_nccl().violations.empty());
    reset_mock_nccl();
  }
};

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace hortator::test
