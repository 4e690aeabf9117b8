#include "core/activity/flight.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>

namespace hortator::activity {
namespace {

// `number` is 0 while the other fields change. Every field is stored with release, so that a reader of a new field sees
// the zero as well.
struct alignas(64) Stay {
  std::atomic<std::uint64_t> number{0};
  std::array<std::atomic<std::uint64_t>, Name::chunks> name{};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> communicator{0};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<int> size{0};
  std::atomic<double> begun{0};
  std::atomic<double> ended{0};
};
static_assert(std::atomic<double>::is_always_lock_free);

// Never destroyed: signal handlers read them until the process ends.
constinit std::array<Stay, flight_length> stays;
constinit std::atomic<std::uint64_t> newest{0};

double wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Stay& stay_of(std::uint64_t number) { return stays[number % flight_length]; }

bool read_stay(std::uint64_t number, FlightEntry& entry) {
  const auto& stay = stay_of(number);
  if (stay.number.load(std::memory_order_acquire) != number) return false;
  std::array<std::uint64_t, Name::chunks> name{};
  for (std::size_t i = 0; i < Name::chunks; ++i) name[i] = stay.name[i].load(std::memory_order_acquire);
  entry.operation = {.name = Name(name),
                     .bytes = stay.bytes.load(std::memory_order_acquire),
                     .communicator = stay.communicator.load(std::memory_order_acquire),
                     .sequence = stay.sequence.load(std::memory_order_acquire),
                     .size = stay.size.load(std::memory_order_acquire)};
  entry.begun = stay.begun.load(std::memory_order_acquire);
  entry.ended = stay.ended.load(std::memory_order_acquire);
  return stay.number.load(std::memory_order_relaxed) == number;
}

}  // namespace

std::uint64_t note_entry(const Operation& operation) {
  const auto number = newest.fetch_add(1, std::memory_order_relaxed) + 1;
  auto& stay = stay_of(number);
  stay.number.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < Name::chunks; ++i)
    stay.name[i].store(operation.name.packed()[i], std::memory_order_release);
  stay.bytes.store(operation.bytes, std::memory_order_release);
  stay.communicator.store(operation.communicator, std::memory_order_release);
  stay.sequence.store(operation.sequence, std::memory_order_release);
  stay.size.store(operation.size, std::memory_order_release);
  stay.begun.store(wall_clock(), std::memory_order_release);
  stay.ended.store(0, std::memory_order_release);
  stay.number.store(number, std::memory_order_release);
  return number;
}

void note_exit(std::uint64_t number) {
  auto& stay = stay_of(number);
  if (stay.number.load(std::memory_order_relaxed) == number) stay.ended.store(wall_clock(), std::memory_order_release);
}

void read_flight(FlightLog& flight) {
  flight.count = 0;
  const auto last = newest.load(std::memory_order_acquire);
  const auto first = last - std::min<std::uint64_t>(last, flight_length) + 1;
  for (auto number = first; number <= last; ++number) {
    if (read_stay(number, flight.entries[flight.count])) ++flight.count;
  }
}

}  // namespace hortator::activity
