#include "mpi/rehearsed_world.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/environment/setting_key.hpp"
#include "core/text/text.hpp"

namespace hortator::mpi {
namespace {

struct Groups {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<int>> of;
  std::vector<std::vector<int>> made;
};

Groups& groups() {
  static auto& groups = *new Groups;
  return groups;
}

thread_local std::function<int(int rank)> color_of_rank;

}  // namespace

RehearsedWorld parse_rehearsed_world(const std::string& text) {
  const auto parts = text::split(text, '/');
  std::vector<int> numbers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (const auto number = core::parse_whole_number(parts[i], i == 0 ? 0 : 1)) numbers.push_back(*number);
  }
  if (parts.size() != 3 || numbers.size() != 3 || numbers[0] >= numbers[1]) {
    throw UsageError(
        {.what = text::concat("HORTATOR_REHEARSE: expected RANK/RANKS/RANKS_OF_A_NODE, got ", text::quote(text)),
         .why = "it makes a program run as one rank of a world that does not exist",
         .hint = "use hortator rehearse, which sets it"});
  }
  return {.rank = numbers[0], .ranks = numbers[1], .ranks_of_a_node = numbers[2]};
}

const std::optional<RehearsedWorld>& rehearsed_world() {
  static const auto world = [] {
    const auto asked = core::variable("HORTATOR_REHEARSE");
    return asked ? std::optional(parse_rehearsed_world(*asked)) : std::nullopt;
  }();
  return world;
}

bool is_rehearsed(const Communicator& comm) { return comm.size() > 1 && rehearsed_world().has_value(); }

ColorsOfAll::ColorsOfAll(std::function<int(int rank)> color)
    : former_(std::exchange(color_of_rank, std::move(color))) {}
ColorsOfAll::~ColorsOfAll() { color_of_rank = std::move(former_); }

std::vector<int> rehearsed_members(const Communicator& comm) { return detail::members_of(comm.number()); }

std::vector<std::vector<int>> rehearsed_groups() {
  const std::lock_guard lock(groups().mutex);
  return groups().made;
}

namespace detail {

void set_members(std::uint64_t comm, std::vector<int> members) {
  const std::lock_guard lock(groups().mutex);
  auto& made = groups().made;
  if (std::ranges::find(made, members) == made.end()) made.push_back(members);
  groups().of[comm] = std::move(members);
}

void drop_members(std::uint64_t comm) noexcept {
  const std::lock_guard lock(groups().mutex);
  groups().of.erase(comm);
}

std::vector<int> members_of(std::uint64_t comm) {
  const std::lock_guard lock(groups().mutex);
  const auto found = groups().of.find(comm);
  return found == groups().of.end() ? std::vector<int>() : found->second;
}

std::vector<int> members_with_color(const std::vector<int>& members, int color, int index) {
  if (!color_of_rank) return members;
  std::vector<int> same;
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    if (i == index || color_of_rank(i) == color) same.push_back(members[static_cast<std::size_t>(i)]);
  }
  return same;
}

}  // namespace detail
}  // namespace hortator::mpi
