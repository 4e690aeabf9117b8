#include "core/activity/activity.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/activity/device_activity.hpp"
#include "core/hash.hpp"

namespace hortator::activity {

// A thread's collective. The version is odd while it changes; every field is released, so that whoever sees a new field
// sees the odd version as well.
struct alignas(64) NodePeerGroup {
  std::atomic<std::uint64_t> version{0};
  std::array<std::atomic<std::uint64_t>, Name::words> name{};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> communicator{0};
  std::atomic<std::uint64_t> family{0};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<int> size{0};
  std::atomic<bool> inside{false};
  std::atomic<bool> taken{false};
  int depth = 0;  // the thread's own
};

struct Entry {
  std::atomic<std::uint64_t> communicator{0};  // 0 while the others change
  std::atomic<std::uint64_t> family{0};
  std::atomic<std::uint64_t> entered{0};
  std::atomic<bool> open{false};
};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

// Never destroyed: other threads look here until the very end of the process. A thread or communicator too many is not
// recorded, which costs words in a report and nothing else.
constinit std::array<NodePeerGroup, 8> lanes;
constinit std::array<Entry, 64> entries;
constinit NodePeerGroup device_lane;
constinit std::atomic<bool> has_device_operation{false};
constinit std::atomic<Phase> phase{Phase::running};
constinit std::mutex entries_mutex;

constinit thread_local NodePeerGroup* own_lane = nullptr;

// Gives the lane back when its thread ends.
struct Seat {
  ~Seat() {
    if (auto* lane = std::exchange(own_lane, nullptr)) lane->taken.store(false, release);
  }
  void keep() {}
};
thread_local Seat seat;

NodePeerGroup* take_lane() {
  for (auto& lane : lanes) {
    if (lane.taken.exchange(true, std::memory_order_acq_rel)) continue;
    seat.keep();
    return own_lane = &lane;
  }
  return nullptr;
}

void write(NodePeerGroup& lane, const Operation& operation, bool inside = true) {
  const auto version = lane.version.load(relaxed);
  lane.version.store(version + 1, relaxed);
  for (std::size_t i = 0; i < Name::words; ++i) lane.name[i].store(operation.name.packed()[i], release);
  lane.bytes.store(operation.bytes, release);
  lane.communicator.store(operation.communicator, release);
  lane.family.store(operation.family, release);
  lane.sequence.store(operation.sequence, release);
  lane.size.store(operation.size, release);
  lane.inside.store(inside, release);
  lane.version.store(version + 2, release);
}

View::Current read(const NodePeerGroup& lane) {
  View::Current current;
  do {
    current.visit = lane.version.load(acquire);
    std::array<std::uint64_t, Name::words> name{};
    for (std::size_t i = 0; i < Name::words; ++i) name[i] = lane.name[i].load(acquire);
    current.operation = {.name = Name(name),
                         .bytes = lane.bytes.load(acquire),
                         .communicator = lane.communicator.load(acquire),
                         .family = lane.family.load(acquire),
                         .sequence = lane.sequence.load(acquire),
                         .size = lane.size.load(acquire)};
    current.inside = lane.inside.load(acquire);
  } while (current.visit % 2 == 1 || current.visit != lane.version.load(relaxed));
  return current;
}

// Communicators that are gone are remembered as long as there is room: others may still wait in them.
Entry* take_entry(std::uint64_t id, std::uint64_t family) {
  const std::scoped_lock lock(entries_mutex);
  static std::size_t next = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& entry = entries[next++ % entries.size()];
    if (entry.open.load(relaxed)) continue;
    entry.communicator.store(0, relaxed);
    entry.family.store(family, release);
    entry.entered.store(0, release);
    entry.open.store(true, release);
    entry.communicator.store(id, release);
    return &entry;
  }
  return nullptr;
}

}  // namespace

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, 4> names = {"running", "set-up", "checkpoint", "one side first"};
  return names[static_cast<std::size_t>(phase)];
}

bool is_patient(Phase phase) { return phase == Phase::checkpoint || phase == Phase::one_side_first; }

std::string Name::text() const {
  std::string text;
  for (std::size_t i = 0; i < words * 8; ++i) {
    const char c = static_cast<char>(words_[i / 8] >> (i % 8 * 8));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

Membership::Membership(std::uint64_t id, std::uint64_t family, int size)
    : id_(id), family_(family), size_(size), entry_(take_entry(id, family)) {}

Membership::~Membership() { close(); }

Membership::Membership(Membership&& other) noexcept { *this = std::move(other); }

Membership& Membership::operator=(Membership&& other) noexcept {
  if (this == &other) return *this;
  close();
  id_ = other.id_;
  family_ = other.family_;
  size_ = other.size_;
  sequence_ = other.sequence_;
  derived_ = other.derived_;
  entry_ = std::exchange(other.entry_, nullptr);
  return *this;
}

void Membership::close() noexcept {
  if (auto* entry = std::exchange(entry_, nullptr)) entry->open.store(false, release);
}

Membership Membership::derive(int part, int size) const {
  // Mixed once alone: ids of communicators that were not derived are small, and core::mix(1, 2) equals core::mix(2, 1).
  const auto own = core::mix(0, id_);
  return {core::mix(core::mix(own, ++derived_), static_cast<std::uint64_t>(part)), family_, size};
}

Operation Membership::begin(Name name, std::uint64_t bytes) const {
  ++sequence_;
  if (entry_ != nullptr) entry_->entered.store(sequence_, release);
  return {.name = name, .bytes = bytes, .communicator = id_, .family = family_, .sequence = sequence_, .size = size_};
}

Collective::Collective(const Operation& operation) : lane_(own_lane != nullptr ? own_lane : take_lane()) {
  if (lane_ != nullptr && lane_->depth++ == 0) write(*lane_, operation);
}

Collective::~Collective() {
  if (lane_ != nullptr && --lane_->depth == 0) lane_->inside.store(false, release);
}

PhaseScope::PhaseScope(Phase now) : before_(phase.exchange(now, relaxed)) {}

PhaseScope::~PhaseScope() { phase.store(before_, relaxed); }

View view() {
  View seen{.phase = phase.load(relaxed)};
  for (const auto& lane : lanes) seen.threads.push_back(read(lane));
  for (const auto& entry : entries) {
    const auto id = entry.communicator.load(acquire);
    const View::Standing standing{
        .communicator = id, .family = entry.family.load(acquire), .entered = entry.entered.load(acquire)};
    if (id != 0 && id == entry.communicator.load(relaxed)) seen.standings.push_back(standing);
  }
  return seen;
}

Operation current() { return own_lane != nullptr && own_lane->depth > 0 ? read(*own_lane).operation : Operation(); }

void tell_device(const Operation& operation, bool is_its_turn) {
  write(device_lane, operation, is_its_turn);
  has_device_operation.store(true, release);
}

void tell_device_idle() {
  has_device_operation.store(false, release);
  device_lane.inside.store(false, release);
}

std::optional<OnDevice> on_device() {
  const auto now = read(device_lane);
  if (!has_device_operation.load(acquire)) return {};
  return OnDevice{.operation = now.operation, .is_its_turn = now.inside};
}

View view_with_device() {
  auto seen = view();
  seen.threads.push_back(read(device_lane));
  return seen;
}

}  // namespace hortator::activity
