#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace hortator::data {

/// One end of a pipe in memory that two ranks share: one writes bytes, the other reads them. The bytes of each pass
/// over a loader are separate: the writer begins once the reader has entered the pass, and bytes that the reader has
/// not read when it leaves are discarded. Both ends count passes from 1. Zeroed memory is an empty pipe.
class NodePipe {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20;
  static constexpr std::size_t bytes = capacity + 4096;  ///< of the shared memory

  /// Called while an end waits; throws to stop waiting.
  using Check = std::function<void()>;

  explicit NodePipe(std::byte* memory) : head_(reinterpret_cast<Head*>(memory)), ring_(memory + bytes - capacity) {}

  // The reader's end.
  void enter(std::uint64_t pass);
  void leave(std::uint64_t pass);
  /// Throws Error if the writer leaves the pass before it has written that many bytes.
  void read(std::uint64_t pass, void* data, std::size_t count, const Check& check);

  // The writer's end.
  /// Waits until the reader enters the pass. Returns false if it has already left it.
  bool open(std::uint64_t pass, const Check& check);
  /// Returns false if the reader has left the pass.
  bool write(std::uint64_t pass, const void* data, std::size_t count, const Check& check);
  void close(std::uint64_t pass);

 private:
  struct alignas(64) Counter {  // a cache line each: both ends write concurrently
    std::atomic<std::uint64_t> value;
  };
  struct Head {
    Counter entered;  ///< the reader's latest pass
    Counter left;     ///< the reader's latest pass that it has left
    Counter opened;   ///< the writer's latest pass
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
