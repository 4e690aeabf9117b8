#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

/// A rehearsal (`hortator rehearse`): this process is one rank of a world whose other ranks do not exist. Communicators
/// have the world's sizes and ranks. Collectives on host values return what they would if all ranks passed this rank's
/// values, and messages go nowhere.
namespace hortator::mpi {

struct RehearsedWorld {
  int rank = 0;
  int ranks = 1;
  int ranks_of_a_node = 1;

  friend bool operator==(const RehearsedWorld&, const RehearsedWorld&) = default;
};

/// Reads "317/4096/8": rank 317 of 4,096, 8 on each node. Throws UsageError for any other text.
RehearsedWorld parse_rehearsed_world(const std::string& text);

/// The world that HORTATOR_REHEARSE asks for; nothing in ordinary runs.
const std::optional<RehearsedWorld>& rehearsed_world();

/// Whether ranks of the communicator do not exist.
bool is_rehearsed(const Communicator& comm);

/// While it lives, splits know the color that each rank of the communicator would pass: a rehearsal has no other ranks
/// to ask. Without one, all ranks are taken to pass this rank's color. Has no effect in ordinary runs.
class ColorsOfAll {
 public:
  explicit ColorsOfAll(std::function<int(int rank)> color);
  ~ColorsOfAll();
  ColorsOfAll(const ColorsOfAll&) = delete;
  ColorsOfAll& operator=(const ColorsOfAll&) = delete;

 private:
  std::function<int(int rank)> former_;
};

/// The ranks of the world that a communicator of a rehearsal has, in its order.
std::vector<int> rehearsed_members(const Communicator& comm);

/// The groups that this process has made, each once, in the order in which they were made.
std::vector<std::vector<int>> rehearsed_groups();

namespace detail {
// `comm`: Communicator::number().
void set_members(std::uint64_t comm, std::vector<int> members);
void drop_members(std::uint64_t comm) noexcept;
std::vector<int> members_of(std::uint64_t comm);
/// Those of `members` that have the color of this rank, which is at `index` among them.
std::vector<int> members_with_color(const std::vector<int>& members, int color, int index);
}  // namespace detail

}  // namespace hortator::mpi
