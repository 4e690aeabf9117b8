#include "mock_wire.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "core/text/text.hpp"

namespace hortator::test {
namespace {

constexpr std::size_t slot_bytes = std::size_t{8} << 20;
constexpr std::size_t slots_a_rank = 64;

// A message, until all its readers have read it. `key` is written last and is 0 while the slot is free.
struct WireSlot {
  std::atomic<std::uint64_t> key;
  std::atomic<int> readers_left;
  std::size_t size;
  std::byte data[slot_bytes - 64];
};
using Outbox = std::array<WireSlot, slots_a_rank>;

struct Wire {
  Outbox* outboxes = nullptr;  // by rank
  int rank = 0;
};

// Rank 0 makes the memory; it takes up only what is written to. Nothing is left behind when ranks are killed.
Wire make_wire() {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto bytes = sizeof(Outbox) * static_cast<std::size_t>(ranks);
  std::array<int, 2> source{getpid(), rank == 0 ? memfd_create("mock-nccl", 0) : -1};
  if (rank == 0 && ftruncate(source[1], static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate");
  MPI_Bcast(source.data(), 2, MPI_INT, 0, MPI_COMM_WORLD);
  const int file = rank == 0 ? source[1] : open(text::concat("/proc/", source[0], "/fd/", source[1]).c_str(), O_RDWR);
  auto* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (begin == MAP_FAILED) throw std::runtime_error("the mock's memory cannot be mapped");
  MPI_Barrier(MPI_COMM_WORLD);  // before rank 0 closes it
  close(file);
  return {static_cast<Outbox*>(begin), rank};
}

Wire& wire() {
  static Wire made = make_wire();
  return made;
}

void send(MessageKey key, int readers, const Bytes& bytes) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  for (auto& slot : wire().outboxes[wire().rank]) {
    if (slot.key.load(std::memory_order_acquire) != 0) continue;
    if (bytes.size() > sizeof slot.data) return violation("a message is too large for the mock");
    std::memcpy(slot.data, bytes.data(), bytes.size());
    slot.size = bytes.size();
    slot.readers_left = readers;
    return slot.key.store(key.packed(), std::memory_order_release);
  }
  violation("too many messages of the mock are under way");
}

bool receive(int sender, MessageKey key, Bytes& bytes) {
  for (auto& slot : wire().outboxes[sender]) {
    if (slot.key.load(std::memory_order_acquire) != key.packed()) continue;
    bytes.assign(slot.data, slot.data + slot.size);
    if (slot.readers_left.fetch_sub(1) == 1) slot.key.store(0, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

void open_wire() { static_cast<void>(wire()); }

void clear_wire() {
  open_wire();
  MPI_Barrier(MPI_COMM_WORLD);
  for (auto& slot : wire().outboxes[wire().rank]) slot.key = 0;
  MPI_Barrier(MPI_COMM_WORLD);
}

Exchange::Exchange(std::vector<int> ranks, MessageKey key, const Bytes& mine)
    : ranks_(std::move(ranks)), key_(key), all_(ranks_.size()), has_come_(ranks_.size()) {
  send(key_, static_cast<int>(ranks_.size()), mine);
}

bool Exchange::move_on() {
  bool is_done = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!has_come_[i]) has_come_[i] = receive(ranks_[i], key_, all_[i]);
    is_done = is_done && has_come_[i];
  }
  return is_done;
}

}  // namespace hortator::test
