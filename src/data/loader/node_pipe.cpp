#include "data/loader/node_pipe.hpp"

#include <algorithm>
#include <cstring>
#include <hortator/error.hpp>

#include "comm/shm/wait.hpp"

namespace hortator::data {
namespace {

constexpr int spins = 0;  // reading a batch takes longer than the scheduler needs to wake a waiting thread

std::uint64_t value_of(const auto& counter) { return counter.value.load(std::memory_order_acquire); }
void set(auto& counter, std::uint64_t value) { counter.value.store(value, std::memory_order_release); }

}  // namespace

void NodePipe::enter(std::uint64_t pass) { set(head_->entered, pass); }
void NodePipe::leave(std::uint64_t pass) { set(head_->left, pass); }
void NodePipe::close(std::uint64_t pass) { set(head_->closed, pass); }

bool NodePipe::is_left(std::uint64_t pass) const {
  return value_of(head_->left) >= pass || value_of(head_->entered) > pass;
}

std::size_t NodePipe::filled() const {
  return static_cast<std::size_t>(value_of(head_->written) - value_of(head_->taken));
}

// The reader does not touch the ring before it sees the pass opened.
bool NodePipe::open(std::uint64_t pass, const Check& check) {
  comm::wait_until([&] { return value_of(head_->entered) >= pass; }, spins, check);
  if (is_left(pass)) return false;
  set(head_->written, 0);
  set(head_->taken, 0);
  set(head_->opened, pass);
  return true;
}

bool NodePipe::write(std::uint64_t pass, const void* data, std::size_t count, const Check& check) {
  const auto* from = static_cast<const std::byte*>(data);
  while (count > 0) {
    comm::wait_until([&] { return filled() < capacity || is_left(pass); }, spins, check);
    if (is_left(pass)) return false;
    const auto written = value_of(head_->written);
    const auto at = static_cast<std::size_t>(written) % capacity;
    const auto piece = std::min({count, capacity - filled(), capacity - at});
    std::memcpy(ring_ + at, from, piece);
    set(head_->written, written + piece);
    from += piece;
    count -= piece;
  }
  return true;
}

void NodePipe::read(std::uint64_t pass, void* data, std::size_t count, const Check& check) {
  auto* to = static_cast<std::byte*>(data);
  const auto is_open = [&] { return value_of(head_->opened) == pass; };
  while (count > 0) {
    bool is_closed = false;
    comm::wait_until(
        [&] {
          is_closed = value_of(head_->closed) >= pass || value_of(head_->opened) > pass;
          return is_closed || (is_open() && filled() > 0);
        },
        spins, check);
    if (is_closed && (!is_open() || filled() == 0)) {
      throw Error({.what = "The rank that reads for this node has left its loop over the loader",
                   .why = "with dispatch_batches the other ranks get their batches from it",
                   .hint = "let all ranks leave a loop at the same batch; that rank's own message has the reason"});
    }
    const auto taken = value_of(head_->taken);
    const auto at = static_cast<std::size_t>(taken) % capacity;
    const auto piece = std::min({count, filled(), capacity - at});
    std::memcpy(to, ring_ + at, piece);
    set(head_->taken, taken + piece);
    to += piece;
    count -= piece;
  }
}

}  // namespace hortator::data
