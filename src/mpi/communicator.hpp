#pragma once

#include <cstdint>
#include <hortator/error.hpp>
#include <memory>
#include <source_location>
#include <string_view>
#include <utility>

#include "core/activity/activity.hpp"

namespace hortator::mpi {

class MpiError : public Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own message unless `code`, which a function of MPI has returned, is MPI_SUCCESS.
void check(int code, std::string_view operation, std::source_location where = std::source_location::current());

/// A collective on host values that this rank is about to enter.
struct Call {
  activity::Name verb = "";
  std::uint64_t bytes = 0;
  std::string_view detail = {};  ///< the operation of a reduction
  int root = -1;
  bool has_same_bytes = true;  ///< on all ranks; texts may differ in length
};

/// Debug mode: compares the ranks' calls before each collective.
class CallCheck {
 public:
  virtual ~CallCheck() = default;
  /// Throws on all ranks where the calls differ. @collective
  virtual void compare(const Call& call) const = 0;
};

/// Owns an MPI communicator. Move-only: a copy would hide a collective. MPI errors on it are thrown as exceptions.
class Communicator {
 public:
  /// A duplicate of MPI_COMM_WORLD, so that our messages never match the application's. Starts a family. @collective
  static Communicator world();
  /// A duplicate of the communicator with this Fortran handle. Throws UsageError for one that is null or joins two
  /// groups. Starts a family. @collective
  static Communicator of_fortran(std::int64_t handle);
  /// This rank alone. Starts a family.
  static Communicator self();
  /// Starts a family. @collective
  Communicator duplicate() const;
  /// The same of the communicator with this handle of MPI: duplicate_of() in native.hpp. @collective
  static Communicator of_number(std::uint64_t handle);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::uint64_t number() const { return comm_; }  ///< MPI's own handle: native.hpp
  /// The rank that rank `rank` of this communicator has in the one with which its family began, which is the one that
  /// users know. Local.
  int family_rank(int rank) const;
  /// Collectives are recorded here, so that the watchdog can name a rank that is missing.
  const activity::Membership& membership() const { return membership_; }

  /// Makes ranks compare their calls before each collective of this communicator. Communicators derived from it are not
  /// affected. @collective
  void check_calls(std::shared_ptr<const CallCheck> check) const { check_ = std::move(check); }

  /// Ranks with the same color, ordered by key. @collective
  Communicator split(int color, int key) const;
  /// The first `count` ranks. @collective over these ranks only
  Communicator first(int count) const;
  /// The ranks that share this rank's memory, in rank order. @collective
  Communicator node() const;

 private:
  friend class CollectiveScope;

  /// The ranks of the communicator with which a family begins.
  struct Family;

  /// The ranks agree on the communicator's number: 8 bytes from its first rank. Without a parent it starts a family.
  /// @collective
  explicit Communicator(std::uint64_t owned, const Communicator* parent = nullptr);
  void free() noexcept;

  std::uint64_t comm_;
  int rank_ = 0;
  int size_ = 1;
  activity::Membership membership_;
  std::shared_ptr<const Family> family_;
  mutable std::shared_ptr<const CallCheck> check_;
  mutable int depth_ = 0;  ///< of collectives within collectives
};

/// While it exists, this thread is in a collective of `comm`: the watchdog sees it. In debug mode the constructor
/// compares the ranks' calls. Collectives called within it are part of it.
class CollectiveScope {
 public:
  CollectiveScope(const Communicator& comm, const Call& call)
      : here_(comm.membership(), call.verb, call.bytes), comm_(comm) {
    if (comm_.check_ && comm_.depth_ == 0) comm_.check_->compare(call);
    ++comm_.depth_;
  }
  ~CollectiveScope() { --comm_.depth_; }
  CollectiveScope(const CollectiveScope&) = delete;
  CollectiveScope& operator=(const CollectiveScope&) = delete;

 private:
  activity::Collective here_;
  const Communicator& comm_;
};

}  // namespace hortator::mpi
