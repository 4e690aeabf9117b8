#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Messages between the ranks of MPI_COMM_WORLD, in memory that they share: the mock's threads may not call MPI.
namespace hortator::test {

using Bytes = std::vector<std::byte>;

/// Callable from any thread.
void violation(const std::string& what);

/// Makes the memory at the first call. @collective
void open_wire();
/// Forgets all messages that were not read. @collective
void clear_wire();

/// Which message: `number` counts those of the communicator `tag`, from 1.
struct MessageKey {
  std::int32_t tag = 0;
  std::int32_t number = 0;

  std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint32_t>(tag)} << 32 | static_cast<std::uint32_t>(number);
  }
};

/// Everybody's bytes to everybody, in the order of `ranks`; done when all have come.
class Exchange {
 public:
  /// Sends `mine`.
  Exchange(std::vector<int> ranks, MessageKey key, const Bytes& mine);
  bool move_on();
  const std::vector<Bytes>& all() const { return all_; }

 private:
  std::vector<int> ranks_;
  MessageKey key_;
  std::vector<Bytes> all_;
  std::vector<bool> has_come_;
};

}  // namespace hortator::test
