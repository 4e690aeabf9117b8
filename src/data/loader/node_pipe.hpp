#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace hortator::data {

/// One end of a pipe through memory that two ranks share: one writes bytes, the other reads them. Every pass over a
/// loader has its bytes to itself: the writer begins with the first ones once the reader has come to that pass, and
/// what a reader has left is lost. Passes are counted from 1 on, alike on both ends. Memory of zeros is an empty pipe.
class NodePipe {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20;
  static constexpr std::size_t bytes = capacity + 4096;  ///< of the shared memory

  /// Called while an end waits; throws when waiting is of no use any more.
  using Check = std::function<void()>;

  explicit NodePipe(std::byte* memory) : head_(reinterpret_cast<Head*>(memory)), ring_(memory + bytes - capacity) {}

  // The reader's end.
  void enter(std::uint64_t pass);
  void leave(std::uint64_t pass);
  /// Throws Error when the writer leaves the pass before it has written so much.
  void read(std::uint64_t pass, void* data, std::size_t count, const Check& check);

  // The writer's end.
  /// Waits for the reader to come to the pass. False: it has left it already.
  bool open(std::uint64_t pass, const Check& check);
  /// False: the reader has left the pass.
  bool write(std::uint64_t pass, const void* data, std::size_t count, const Check& check);
  void close(std::uint64_t pass);

 private:
  struct alignas(64) Counter {  // a cache line for each: their ends change them at any time
    std::atomic<std::uint64_t> value;
  };
  struct Head {
    Counter entered;  ///< the reader's latest pass
    Counter left;     ///< the latest one that it has left
    Counter opened;   ///< the writer's
    Counter closed;
    Counter written;  ///< bytes of the writer's pass
    Counter taken;    ///< by the reader
  };
  static_assert(sizeof(Head) <= bytes - capacity);

  bool is_left(std::uint64_t pass) const;
  std::size_t filled() const;

  Head* head_;
  std::byte* ring_;
};

}  // namespace hortator::data
