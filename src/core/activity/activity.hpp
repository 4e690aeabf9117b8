#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What this process is doing, kept for whoever has to explain why others wait for it. Written by any thread with plain
/// atomic stores: no lock, nothing allocated once a thread has entered its first collective. A collective costs about
/// 12 ns in all. The record is the process's own; who wants others to see it publishes view().
namespace hortator::activity {

/// In patient phases one rank may work for long while all others wait for it.
enum class Phase : std::uint8_t { running, set_up, checkpoint, one_side_first };
std::string_view to_string(Phase phase);
bool is_patient(Phase phase);

/// A short text that another thread can read word by word. Cut to 23 characters.
class Name {
 public:
  static constexpr std::size_t words = 3;

  consteval Name(const char* text) {  // NOLINT(google-explicit-constructor): names are written as literals
    for (std::size_t i = 0; text[i] != '\0' && i + 1 < words * 8; ++i) {
      words_[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (i % 8 * 8);
    }
  }
  constexpr explicit Name(const std::array<std::uint64_t, words>& packed) : words_(packed) {}

  constexpr const std::array<std::uint64_t, words>& packed() const { return words_; }
  std::string text() const;

 private:
  std::array<std::uint64_t, words> words_{};
};

/// One collective of one communicator.
struct Operation {
  Name name = "";
  std::uint64_t bytes = 0;
  std::uint64_t communicator = 0;
  std::uint64_t family = 0;
  std::uint64_t sequence = 0;  ///< the communicator's collectives are counted from 1 on; 0: none
  int size = 0;                ///< the communicator's ranks

  explicit operator bool() const { return sequence != 0; }
};

struct Entry;

/// This rank's place in one communicator, by which its collectives are counted. A family is a communicator that
/// somebody made from scratch, and all that came of it.
class Membership {
 public:
  Membership() = default;
  /// `id` is the same on all of its ranks and nowhere else.
  Membership(std::uint64_t id, std::uint64_t family, int size);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Membership(Membership&& other) noexcept;
  Membership& operator=(Membership&& other) noexcept;

  /// For a communicator made of this one, by a call that all its ranks make in the same order. `part` tells apart what
  /// one call makes on different ranks.
  Membership derive(int part, int size) const;

  /// Counts a collective that begins. The ranks count alike, because they make the same calls.
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
  Entry* entry_ = nullptr;
};

struct NodePeerGroup;

/// From its construction to its end this thread is in a collective. Within another one it only counts: what the ranks
/// wait in is the outer one.
class Collective {
 public:
  Collective(const Membership& membership, Name name, std::uint64_t bytes = 0)
      : Collective(membership.begin(name, bytes)) {}
  /// Takes up again what was counted before.
  explicit Collective(const Operation& operation);
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

 private:
  NodePeerGroup* lane_;
};

/// From its construction to its end the process is in a phase.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_;
};

/// What another thread sees.
struct View {
  struct Current {
    std::uint64_t visit = 0;  ///< changes each time a collective is entered; 0: none yet
    Operation operation = {};
    bool inside = false;
  };
  struct Standing {
    std::uint64_t communicator = 0;
    std::uint64_t family = 0;
    std::uint64_t entered = 0;  ///< how many of its collectives this rank has begun
  };

  Phase phase = Phase::running;
  std::vector<Current> threads = {};  ///< in a fixed order
  std::vector<Standing> standings = {};
};

View view();

}  // namespace hortator::activity
