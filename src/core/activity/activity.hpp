#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Records what this process is doing, to explain why other ranks wait for it. Any thread writes with plain atomic
/// stores: no lock, and no allocation after a thread's first collective. A collective costs about 12 ns, without its
/// entry among the last ones (flight.hpp). The record is local to the process; publish view() to show it to others.
namespace hortator::activity {

/// Phases of a process. Patient phases are exempt from the stall timeout: one rank may work for long while all others
/// wait for it.
enum class Phase : std::uint8_t { running, set_up, checkpoint, one_side_first };
std::string_view to_string(Phase phase);
bool is_patient(Phase phase);

/// A short text that another thread can read by atomic 64-bit loads. Cut to 23 characters.
class Name {
 public:
  static constexpr std::size_t chunks = 3;

  consteval Name(const char* text) {  // NOLINT(google-explicit-constructor): names are written as literals
    for (std::size_t i = 0; text[i] != '\0' && i + 1 < chunks * 8; ++i) {
      chunks_[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (i % 8 * 8);
    }
  }
  constexpr explicit Name(const std::array<std::uint64_t, chunks>& packed) : chunks_(packed) {}

  constexpr const std::array<std::uint64_t, chunks>& packed() const { return chunks_; }
  std::string text() const;

 private:
  std::array<std::uint64_t, chunks> chunks_{};
};

/// One collective of one communicator.
struct Operation {
  Name name = "";
  std::uint64_t bytes = 0;
  std::uint64_t communicator = 0;
  std::uint64_t family = 0;
  std::uint64_t sequence = 0;  ///< number within the communicator, from 1; 0: none
  int size = 0;                ///< the communicator's ranks

  explicit operator bool() const { return sequence != 0; }
};

struct CommunicatorRecord;

/// This rank's membership in one communicator; counts its collectives. A family is a communicator that was made from
/// scratch, with all communicators derived from it.
class Membership {
 public:
  Membership() = default;
  /// `id` must be equal on all ranks of the communicator and differ from that of any other one.
  Membership(std::uint64_t id, std::uint64_t family, int size);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Membership(Membership&& other) noexcept;
  Membership& operator=(Membership&& other) noexcept;

  /// The membership in a communicator derived from this one. All ranks must call it in the same order. `part`
  /// distinguishes the communicators that one call makes on different ranks.
  Membership derive(int part, int size) const;

  /// Counts a collective that begins. All ranks get the same number, because they make the same calls.
  Operation begin(Name name, std::uint64_t bytes) const;

  std::uint64_t family() const { return family_; }
  std::uint64_t entered() const { return sequence_; }  ///< how many collectives have begun

 private:
  void close() noexcept;

  std::uint64_t id_ = 0;
  std::uint64_t family_ = 0;
  int size_ = 0;
  mutable std::uint64_t sequence_ = 0;
  mutable std::uint64_t derived_ = 0;
  CommunicatorRecord* record_ = nullptr;
};

struct ThreadRecord;

/// During its lifetime this thread is in a collective. A nested one is only counted: the ranks wait in the outer one.
class Collective {
 public:
  Collective(const Membership& membership, Name name, std::uint64_t bytes = 0)
      : Collective(membership.begin(name, bytes)) {}
  /// For an operation that was counted before.
  explicit Collective(const Operation& operation);
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

 private:
  ThreadRecord* record_;
  std::uint64_t flight_number_ = 0;  ///< of the outermost collective; 0: not noted
};

/// During its lifetime the process is in a phase.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_;
};

/// A snapshot, as another thread sees it.
struct View {
  struct Current {
    std::uint64_t visit = 0;  ///< changes each time a collective is entered; 0: none yet
    Operation operation = {};
    bool inside = false;
  };
  struct Progress {
    std::uint64_t communicator = 0;
    std::uint64_t family = 0;
    std::uint64_t entered = 0;  ///< how many of its collectives this rank has begun
  };

  Phase phase = Phase::running;
  std::vector<Current> threads = {};  ///< in a fixed order
  std::vector<Progress> progress = {};
};

View view();

/// Records what the process's device is doing: it continues with operations after the threads have left them.

/// The oldest operation on the device that has not ended. Its turn comes when all earlier work of the device is done;
/// from then on it waits for its peers or runs.
struct OnDevice {
  Operation operation = {};
  bool is_its_turn = false;
};

/// Published by the single thread that polls the device.
void publish_device(const Operation& operation, bool is_its_turn);
void publish_device_idle();

/// Nothing if the device is idle or there is none.
std::optional<OnDevice> on_device();
/// view(), with the device as an additional last thread: inside an operation from its turn on.
View view_with_device();

/// The outermost collective of this thread; none outside of collectives.
Operation current();

}  // namespace hortator::activity
