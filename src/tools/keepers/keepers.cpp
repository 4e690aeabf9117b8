#include "tools/keepers/keepers.hpp"

#include <algorithm>
#include <chrono>
#include <hortator/error.hpp>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_start = 30s;  // srun and ssh may be slow
constexpr auto time_to_end = 10s;

Problem not_started(const KeeperProcess& keeper) {
  return {.what = text::concat("No keeper of checkpoints in memory could be started on ", keeper.where()),
          .why = "it makes the folder for them there, and removes it at the end",
          .hint = "see the message above; leave --memory-checkpoint out to resume from the disk only"};
}

}  // namespace

Keepers::Keepers(KeeperPlan plan) : folder_(std::move(plan.folder)) {
  for (auto& command : plan.commands) running_.emplace_back(std::move(command));
  std::vector<KeeperProcess*> all;
  for (auto& keeper : running_) all.push_back(&keeper);
  const auto late = start_together(all, time_to_start, {});
  if (late.empty()) return;
  const auto error = not_started(*late.front());
  end_together(running_, time_to_end);
  throw Error(error);
}

Keepers::~Keepers() {
  start_together(ended_ones(), time_to_end, {});
  for (const auto& where : end_together(running_, time_to_end)) {
    std::cerr << "hortator: checkpoints in memory may be left in " << folder_.string() << " on " << where
              << ": remove the folder there" << std::endl;
  }
}

std::vector<KeeperProcess*> Keepers::ended_ones() {
  std::vector<KeeperProcess*> ended;
  for (auto& keeper : running_) {
    if (keeper.has_ended()) ended.push_back(&keeper);
  }
  return ended;
}

std::int64_t Keepers::newest_checkpoint() const {
  constexpr std::string_view stem = "checkpoint_";
  std::int64_t newest = -1;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    long long number = 0;
    if (name.starts_with(stem) && text::parse_integer(std::string_view(name).substr(stem.size()), number))
      newest = std::max<std::int64_t>(newest, number);
  }
  return newest;
}

std::vector<std::string> Keepers::renew(const std::function<bool()>& is_asked_to_stop) {
  std::vector<std::string> unreachable;
  for (auto* keeper : start_together(ended_ones(), time_to_start, is_asked_to_stop)) {
    if (is_asked_to_stop && is_asked_to_stop()) return {};
    std::cerr << "hortator: " << Error(not_started(*keeper)).what() << std::endl;
    unreachable.push_back(keeper->where());
  }
  std::erase_if(running_, [&](const KeeperProcess& keeper) {
    return std::ranges::count(unreachable, keeper.where()) > 0 && !keeper.is_running();
  });
  return unreachable;
}

}  // namespace hortator::tools
