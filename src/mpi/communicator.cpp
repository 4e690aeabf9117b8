#include "mpi/communicator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "mpi/environment.hpp"
#include "mpi/native.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::mpi {
namespace {

// A number that no other process of the job draws.
std::uint64_t new_number() {
  static std::atomic<std::uint64_t> count = 0;
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  return ((static_cast<std::uint64_t>(world_rank) + 1) << 32) + ++count;
}

/// While it lives, MPI returns the errors of calls that have no valid communicator.
class ErrorsReturned {
 public:
  ErrorsReturned() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      MPI_Comm_get_errhandler(comms_[i], &before_[i]);
      MPI_Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
    }
  }
  ~ErrorsReturned() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      MPI_Comm_set_errhandler(comms_[i], before_[i]);
      MPI_Errhandler_free(&before_[i]);
    }
  }
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  std::array<MPI_Comm, 2> comms_ = {MPI_COMM_WORLD, MPI_COMM_SELF};
  std::array<MPI_Errhandler, 2> before_ = {};
};

}  // namespace

void check(int code, std::string_view operation, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw MpiError({.what = text::concat(operation, " failed: ", text.data()),
                  .why = "the ranks are no longer in step",
                  .hint = "the job has to be started again; see the messages of MPI above"},
                 where);
}

struct Communicator::Family {
  explicit Family(MPI_Comm comm) { check(MPI_Comm_group(comm, &ranks), "MPI_Comm_group"); }
  ~Family() {
    if (is_usable()) MPI_Group_free(&ranks);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  MPI_Group ranks = MPI_GROUP_NULL;

  /// A communicator whose other ranks do not exist: rehearsed_world.hpp. Local.
  static Communicator rehearsed(std::vector<int> members, const Communicator* parent) {
    MPI_Comm own = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_SELF, &own), "MPI_Comm_dup");
    Communicator made(as_number(own), parent);
    if (members.size() < 2) return made;
    made.rank_ = static_cast<int>(std::ranges::find(members, rehearsed_world()->rank) - members.begin());
    made.size_ = static_cast<int>(members.size());
    detail::set_members(made.number(), std::move(members));
    return made;
  }

  static Communicator rehearsed_copy(MPI_Comm other) {
    auto members = detail::members_of(as_number(other));
    if (other == MPI_COMM_WORLD) {
      members.resize(static_cast<std::size_t>(rehearsed_world()->ranks));
      std::iota(members.begin(), members.end(), 0);
    }
    return rehearsed(std::move(members), nullptr);
  }
};

Communicator Communicator::world() { return duplicate_of(MPI_COMM_WORLD); }
Communicator Communicator::self() { return duplicate_of(MPI_COMM_SELF); }
Communicator Communicator::duplicate() const { return duplicate_of(native(*this)); }
Communicator Communicator::of_fortran(std::int64_t handle) {
  return duplicate_of(MPI_Comm_f2c(static_cast<MPI_Fint>(handle)));
}

// Open MPI makes a null pointer of a Fortran handle that does not exist; MPICH reports it in the next call.
Communicator Communicator::of_number(std::uint64_t handle) {
  const auto other = as_handle<MPI_Comm>(handle);
  int is_inter = 0;
  const ErrorsReturned scope;
  if (other == MPI_COMM_NULL || other == MPI_Comm{} || MPI_Comm_test_inter(other, &is_inter) != MPI_SUCCESS) {
    throw UsageError(
        {.what = "The communicator is null, or its handle is not valid on this rank",
         .why = "the other ranks cannot be notified: they have only that communicator in common with this one, "
                "and wait for it",
         .hint = "pass the handle of a communicator of this rank, as MPI_Comm_c2f gives it, and end the "
                 "program on all ranks"});
  }
  if (is_inter != 0) {
    throw UsageError({.what = "The communicator joins two groups of ranks (an inter-communicator)",
                      .why = "all ranks of a run have numbers in one group",
                      .hint = "merge the groups with MPI_Intercomm_merge"});
  }
  if (rehearsed_world()) return Family::rehearsed_copy(other);
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(other, &copy), "MPI_Comm_dup");
  return Communicator(as_number(copy));
}

Communicator::Communicator(std::uint64_t owned, const Communicator* parent) : comm_(owned) {
  const auto comm = native(*this);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  auto number = rank_ == 0 ? new_number() : 0;
  check(MPI_Bcast(&number, 1, MPI_UINT64_T, 0, comm), "MPI_Bcast");
  membership_ = activity::Membership(number, parent == nullptr ? number : parent->membership_.family(), size_);
  family_ = parent == nullptr ? std::make_shared<const Family>(comm) : parent->family_;
}

Communicator::~Communicator() { free(); }

Communicator::Communicator(Communicator&& other) noexcept
    : comm_(std::exchange(other.comm_, as_number(MPI_COMM_NULL))),
      rank_(other.rank_),
      size_(other.size_),
      membership_(std::move(other.membership_)),
      family_(std::move(other.family_)),
      check_(std::move(other.check_)) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this != &other) {
    free();
    comm_ = std::exchange(other.comm_, as_number(MPI_COMM_NULL));
    rank_ = other.rank_;
    size_ = other.size_;
    membership_ = std::move(other.membership_);
    family_ = std::move(other.family_);
    check_ = std::move(other.check_);
  }
  return *this;
}

void Communicator::free() noexcept {
  if (rehearsed_world()) detail::drop_members(comm_);
  auto comm = native(*this);
  if (comm != MPI_COMM_NULL && is_usable()) MPI_Comm_free(&comm);
}

int Communicator::family_rank(int rank) const {
  if (is_rehearsed(*this)) return rehearsed_members(*this).at(static_cast<std::size_t>(rank));
  MPI_Group own = MPI_GROUP_NULL;
  int found = MPI_UNDEFINED;
  check(MPI_Comm_group(native(*this), &own), "MPI_Comm_group");
  check(MPI_Group_translate_ranks(own, 1, &rank, family_->ranks, &found), "MPI_Group_translate_ranks");
  MPI_Group_free(&own);
  return found;
}

Communicator Communicator::split(int color, int key) const {
  const CollectiveScope here(*this, {.verb = "split"});
  if (is_rehearsed(*this))
    return Family::rehearsed(detail::members_with_color(rehearsed_members(*this), color, rank_), this);
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(native(*this), color, key, &part), "MPI_Comm_split");
  return Communicator(as_number(part), this);
}

// Only these ranks call it: it must not change a sequence number that the others would have to change as well.
Communicator Communicator::first(int count) const {
  if (is_rehearsed(*this)) {
    auto members = rehearsed_members(*this);
    members.resize(static_cast<std::size_t>(count));
    return Family::rehearsed(std::move(members), this);
  }
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group part = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  int range[1][3] = {{0, count - 1, 1}};
  check(MPI_Comm_group(native(*this), &all), "MPI_Comm_group");
  check(MPI_Group_range_incl(all, 1, range, &part), "MPI_Group_range_incl");
  check(MPI_Comm_create_group(native(*this), part, 0, &made), "MPI_Comm_create_group");
  MPI_Group_free(&part);
  MPI_Group_free(&all);
  return Communicator(as_number(made), this);
}

Communicator Communicator::node() const {
  const CollectiveScope here(*this, {.verb = "split by node"});
  if (is_rehearsed(*this)) {
    const auto node_of = [](int rank) { return rank / rehearsed_world()->ranks_of_a_node; };
    auto members = rehearsed_members(*this);
    std::erase_if(members, [&](int rank) { return node_of(rank) != node_of(rehearsed_world()->rank); });
    return Family::rehearsed(std::move(members), this);
  }
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split_type(native(*this), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part), "MPI_Comm_split_type");
  return Communicator(as_number(part), this);
}

}  // namespace hortator::mpi
