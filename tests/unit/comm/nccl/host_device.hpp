#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <vector>

/// A stand-in for the room `device` in host memory: one device a rank, whose streams do at once what they are given.
/// What is handed from stream to stream is written down, in one list with what the mock NCCL was asked to do.
namespace hortator::test {

std::vector<std::string>& trace();

struct HostDevice {
  std::string uuid;
  std::string name = "Host";
  bool is_stuck = false;        ///< its streams never come to an end
  std::atomic<long> marks = 0;  ///< that were taken so far
  std::atomic<long> last_reached =
      std::numeric_limits<long>::max();  ///< of the marks, counted from 1; streams stand behind it
};
HostDevice& host_device();

}  // namespace hortator::test
