#include "core/activity/activity.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/activity/flight.hpp"
#include "core/hash.hpp"

namespace hortator::activity {

// A thread's collective. The version is odd during a change. Every field is stored with release, so that a reader of a
// new field sees the odd version as well.
struct alignas(64) ThreadRecord {
  std::atomic<std::uint64_t> version{0};
  std::array<std::atomic<std::uint64_t>, Name::chunks> name{};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> communicator{0};
  std::atomic<std::uint64_t> family{0};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<int> size{0};
  std::atomic<bool> inside{false};
  std::atomic<bool> taken{false};
  int depth = 0;  // used only by the thread itself
};

struct CommunicatorRecord {
  std::atomic<std::uint64_t> communicator{0};  // 0 while the other fields change
  std::atomic<std::uint64_t> family{0};
  std::atomic<std::uint64_t> entered{0};
  std::atomic<bool> open{false};
};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

// Never destroyed: other threads read them until the process ends. Threads and communicators beyond these limits are
// not recorded; only the report is shorter.
constinit std::array<ThreadRecord, 8> thread_records;
constinit std::array<CommunicatorRecord, 64> communicator_records;
constinit ThreadRecord device_record;
constinit std::atomic<bool> has_device_operation{false};
constinit std::atomic<Phase> phase{Phase::running};
constinit std::mutex communicators_mutex;

constinit thread_local ThreadRecord* own_record = nullptr;

// Releases the record when its thread ends.
struct RecordOwner {
  ~RecordOwner() {
    if (auto* record = std::exchange(own_record, nullptr)) record->taken.store(false, release);
  }
  void keep() {}
};
thread_local RecordOwner record_owner;

ThreadRecord* take_thread_record() {
  for (auto& record : thread_records) {
    if (record.taken.exchange(true, std::memory_order_acq_rel)) continue;
    record_owner.keep();
    return own_record = &record;
  }
  return nullptr;
}

void write(ThreadRecord& record, const Operation& operation, bool inside = true) {
  const auto version = record.version.load(relaxed);
  record.version.store(version + 1, relaxed);
  for (std::size_t i = 0; i < Name::chunks; ++i) record.name[i].store(operation.name.packed()[i], release);
  record.bytes.store(operation.bytes, release);
  record.communicator.store(operation.communicator, release);
  record.family.store(operation.family, release);
  record.sequence.store(operation.sequence, release);
  record.size.store(operation.size, release);
  record.inside.store(inside, release);
  record.version.store(version + 2, release);
}

View::Current read(const ThreadRecord& record) {
  View::Current current;
  do {
    current.visit = record.version.load(acquire);
    std::array<std::uint64_t, Name::chunks> name{};
    for (std::size_t i = 0; i < Name::chunks; ++i) name[i] = record.name[i].load(acquire);
    current.operation = {.name = Name(name),
                         .bytes = record.bytes.load(acquire),
                         .communicator = record.communicator.load(acquire),
                         .family = record.family.load(acquire),
                         .sequence = record.sequence.load(acquire),
                         .size = record.size.load(acquire)};
    current.inside = record.inside.load(acquire);
  } while (current.visit % 2 == 1 || current.visit != record.version.load(relaxed));
  return current;
}

// Released communicators stay recorded as long as there is room: other ranks may still wait in them.
CommunicatorRecord* take_communicator_record(std::uint64_t id, std::uint64_t family) {
  const std::scoped_lock lock(communicators_mutex);
  static std::size_t next = 0;
  for (std::size_t i = 0; i < communicator_records.size(); ++i) {
    auto& record = communicator_records[next++ % communicator_records.size()];
    if (record.open.load(relaxed)) continue;
    record.communicator.store(0, relaxed);
    record.family.store(family, release);
    record.entered.store(0, release);
    record.open.store(true, release);
    record.communicator.store(id, release);
    return &record;
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
  for (std::size_t i = 0; i < chunks * 8; ++i) {
    const char c = static_cast<char>(chunks_[i / 8] >> (i % 8 * 8));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

Membership::Membership(std::uint64_t id, std::uint64_t family, int size)
    : id_(id), family_(family), size_(size), record_(take_communicator_record(id, family)) {}

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
  record_ = std::exchange(other.record_, nullptr);
  return *this;
}

void Membership::close() noexcept {
  if (auto* record = std::exchange(record_, nullptr)) record->open.store(false, release);
}

Membership Membership::derive(int part, int size) const {
  // Mixed once alone: ids of communicators that were not derived are small, and core::mix(1, 2) equals core::mix(2, 1).
  const auto own = core::mix(0, id_);
  return {core::mix(core::mix(own, ++derived_), static_cast<std::uint64_t>(part)), family_, size};
}

Operation Membership::begin(Name name, std::uint64_t bytes) const {
  ++sequence_;
  if (record_ != nullptr) record_->entered.store(sequence_, release);
  return {.name = name, .bytes = bytes, .communicator = id_, .family = family_, .sequence = sequence_, .size = size_};
}

Collective::Collective(const Operation& operation)
    : record_(own_record != nullptr ? own_record : take_thread_record()) {
  if (record_ == nullptr || record_->depth++ > 0) return;
  write(*record_, operation);
  if (operation) flight_number_ = note_entry(operation);
}

Collective::~Collective() {
  if (record_ == nullptr || --record_->depth > 0) return;
  record_->inside.store(false, release);
  if (flight_number_ != 0) note_exit(flight_number_);
}

PhaseScope::PhaseScope(Phase now) : before_(phase.exchange(now, relaxed)) {}

PhaseScope::~PhaseScope() { phase.store(before_, relaxed); }

View view() {
  View seen{.phase = phase.load(relaxed)};
  for (const auto& record : thread_records) seen.threads.push_back(read(record));
  for (const auto& record : communicator_records) {
    const auto id = record.communicator.load(acquire);
    const View::Progress progress{
        .communicator = id, .family = record.family.load(acquire), .entered = record.entered.load(acquire)};
    if (id != 0 && id == record.communicator.load(relaxed)) seen.progress.push_back(progress);
  }
  return seen;
}

Operation current() {
  return own_record != nullptr && own_record->depth > 0 ? read(*own_record).operation : Operation();
}

void publish_device(const Operation& operation, bool is_its_turn) {
  write(device_record, operation, is_its_turn);
  has_device_operation.store(true, release);
}

void publish_device_idle() {
  has_device_operation.store(false, release);
  device_record.inside.store(false, release);
}

std::optional<OnDevice> on_device() {
  const auto now = read(device_record);
  if (!has_device_operation.load(acquire)) return {};
  return OnDevice{.operation = now.operation, .is_its_turn = now.inside};
}

View view_with_device() {
  auto seen = view();
  seen.threads.push_back(read(device_record));
  return seen;
}

}  // namespace hortator::activity
